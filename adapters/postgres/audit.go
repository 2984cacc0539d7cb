package postgres

import (
	"context"
	"encoding/json"
	"time"

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

var auditTable = tableOf[auditRow]("audit_entries").withOptional("account_id", "database_id", "user_id")

var (
	addAudit  = define(auditTable.insert())
	listAudit = define(auditTable.read().Where("t.database_id = ? AND (t.at, t.id) < (?, ?)").
			OrderBy("t.at DESC", "t.id DESC").Suffix("LIMIT ?"))
	auditOfInstallation = define(auditTable.read().
				Where("t.database_id IS NULL AND t.account_id IS NULL AND (t.at, t.id) < (?, ?)").
				OrderBy("t.at DESC", "t.id DESC").Suffix("LIMIT ?"))
)

var auditOfAccount = define(auditTable.read().
	Where("t.account_id = ? AND (t.at, t.id) < (?, ?)").
	OrderBy("t.at DESC", "t.id DESC").Suffix("LIMIT ?"))

type auditEntries struct{ session }

func (a auditEntries) Add(ctx context.Context, e audit.Entry) error {
	details, err := json.Marshal(e.Details)
	if err != nil {
		return err
	}
	row := auditRow{e.ID, e.At, e.AccountID, e.DatabaseID, e.Actor, e.Action, details}
	return a.write(ctx, addAudit, auditTable.values(row)...)
}

func (a auditEntries) List(ctx context.Context, db id.DatabaseID, p ports.Page) ([]audit.Entry, error) {
	rows, err := pageOf[auditRow](ctx, a.session, listAudit, backward, p, db)
	return entriesOf(rows, err)
}

func (a auditEntries) OfInstallation(ctx context.Context, p ports.Page) ([]audit.Entry, error) {
	rows, err := pageOf[auditRow](ctx, a.session, auditOfInstallation, backward, p)
	return entriesOf(rows, err)
}

func (a auditEntries) OfAccount(ctx context.Context, of id.AccountID, p ports.Page) ([]audit.Entry, error) {
	rows, err := pageOf[auditRow](ctx, a.session, auditOfAccount, backward, p, of)
	return entriesOf(rows, err)
}

func entriesOf(rows []auditRow, err error) ([]audit.Entry, error) {
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
