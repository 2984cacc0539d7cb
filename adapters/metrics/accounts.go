package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// MostAccounts is how many accounts can have figures of their own: each has four of every batch host.
const MostAccounts = 1000

// accounts are the figures of the accounts that hold most. Their label is the account's ID, which names no person.
func (m Measured) accounts() *family {
	databases := describe("pgherd_account_databases", "Databases of an account that are not deleted.", "account")
	bytes := describe("pgherd_account_databases_bytes", "Size of these together, as last measured.", "account")
	backups := describe("pgherd_account_backups_bytes",
		"Size of the backups of an account's databases, those of deleted ones included.", "account")
	operations := describe("pgherd_account_operations", "Open operations of an account.", "account")
	return &family{
		name: "accounts", kept: allKept, all: []*prometheus.Desc{databases, bytes, backups, operations},
		read: func(ctx context.Context, _ time.Time, set setter) error {
			list, err := m.Figures.Accounts(ctx, m.Accounts)
			for _, a := range list {
				set(databases, float64(a.Databases), string(a.AccountID))
				set(bytes, float64(a.Bytes), string(a.AccountID))
				set(backups, float64(a.BackupBytes), string(a.AccountID))
				set(operations, float64(a.Operations), string(a.AccountID))
			}
			return err
		},
	}
}
