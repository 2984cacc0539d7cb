package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// auditRow is an entry as its table has it.
type auditRow struct {
	ID         id.AuditID    `db:"id"`
	At         time.Time     `db:"at"`
	AccountID  id.AccountID  `db:"account_id"`
	DatabaseID id.DatabaseID `db:"database_id"`
	audit.Actor
	Action  audit.Action    `db:"action"`
	Details json.RawMessage `db:"details"`
}

var auditTable = pgdb.TableOf[auditRow]("audit_entries").WithOptional("account_id", "database_id", "user_id").Added()

var (
	listAudit           = auditPages("t.database_id = ?")
	auditOfInstallation = auditPages("t.database_id IS NULL AND t.account_id IS NULL")
	auditOfAccount      = auditPages("t.account_id = ?")
)

// auditPages lists the entries where a condition holds, the latest first.
func auditPages(where string) *pgdb.Statement {
	return pgdb.Define(auditTable.Read().Where(where).Where("(t.at, t.id) < (?, ?)").
		OrderBy("t.at DESC", "t.id DESC").Suffix("LIMIT ?"))
}

type auditEntries struct{ pgdb.Rows[auditRow] }

func (a auditEntries) Add(ctx context.Context, e audit.Entry) error {
	details, err := json.Marshal(e.Details)
	if err != nil {
		return err
	}
	row := auditRow{e.ID, e.At, e.AccountID, e.DatabaseID, e.Actor, e.Action, details}
	return a.Rows.Add(ctx, row)
}

func (a auditEntries) List(ctx context.Context, db id.DatabaseID, p ports.Page) ([]audit.Entry, error) {
	return a.page(ctx, listAudit, p, db)
}

func (a auditEntries) OfInstallation(ctx context.Context, p ports.Page) ([]audit.Entry, error) {
	return a.page(ctx, auditOfInstallation, p)
}

func (a auditEntries) OfAccount(ctx context.Context, of id.AccountID, p ports.Page) ([]audit.Entry, error) {
	return a.page(ctx, auditOfAccount, p, of)
}

func (a auditEntries) page(ctx context.Context, st *pgdb.Statement, p ports.Page, args ...any) ([]audit.Entry, error) {
	rows, err := a.Page(ctx, st, pgdb.Backward, p, args...)
	if err != nil {
		return nil, err
	}
	entries := make([]audit.Entry, len(rows))
	for i, r := range rows {
		entries[i] = audit.Entry{
			ID: r.ID, At: r.At, AccountID: r.AccountID, DatabaseID: r.DatabaseID, Actor: r.Actor, Action: r.Action,
		}
		if err := json.Unmarshal(r.Details, &entries[i].Details); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
