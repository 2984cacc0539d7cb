package databases

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// accountsTime bounds one statement about accounts, and the wait for a connection.
const accountsTime = 10 * time.Second

// SetAccounts stores whose the databases are. One that the server does not have is passed over. A database never changes its
// account, so it does not matter in which order such lists come.
func (x *Databases) SetAccounts(ctx context.Context, c command.SetAccounts) (none command.None, err error) {
	databases, accounts := make(pq.StringArray, 0, len(c.Databases)), make(pq.StringArray, 0, len(c.Databases))
	for _, d := range c.Databases {
		databases, accounts = append(databases, string(d.DatabaseID)), append(accounts, string(d.AccountID))
	}
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	const statement = `UPDATE ledger.database d SET account_id = n.account FROM unnest($1::text[], $2::text[]) AS n (id, account)
		WHERE d.id = n.id AND d.account_id <> n.account`
	_, err = x.db.ExecContext(ctx, statement, databases, accounts)
	return none, err
}

// Holdings lists the databases that have clients, with their accounts, as far as these are known: of those to whose servers
// clients are sent on they are not.
func (x *Databases) Holdings(ctx context.Context) (all []pooler.Holding, err error) {
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var h pooler.Holding
		err := rows.Scan(&h.Database, &h.Account, &h.ConnectionCap)
		all = append(all, h)
		return err
	}, `SELECT name, account_id, connection_cap FROM ledger.database WHERE isolated IS NULL
		UNION ALL SELECT database, '', connection_cap FROM pooler.forward ORDER BY 1`)
	return all, err
}
