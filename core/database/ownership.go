package database

import "github.com/pgherd/pgherd/core/id"

// Ownership says whose a database is.
type Ownership struct {
	DatabaseID id.DatabaseID `db:"id" json:"databaseId"`
	AccountID  id.AccountID  `db:"account_id" json:"accountId"`
}
