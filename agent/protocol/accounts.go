package protocol

// Accounts is the body of PUT /v1/accounts: whose some of the server's databases are. Databases that it does not name keep what
// is known of them, and those that the server does not have are passed over, so a long list may come in parts.
type Accounts struct {
	Databases []DatabaseAccount `json:"databases"`
}

// DatabaseAccount says whose a database is. Its fields are those of ports.DatabaseAccount.
type DatabaseAccount struct {
	DatabaseID string `json:"databaseId"`
	AccountID  string `json:"accountId"`
}
