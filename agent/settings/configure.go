package settings

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// configure sets what the service wants of a database, in one transaction with its row, and has PgBouncer connect anew. It does
// not wait for the sessions of before; see SettleSessions.
func (x *Setter) configure(
	ctx context.Context, e protocol.Command, c command.Configure,
) (done command.Configured, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err != nil {
		return done, err
	}
	crash.Point(crash.SettingsAdmitted)
	if err := x.storeSettings(ctx, d, c); err != nil {
		return done, err
	}
	defer loop.Wake(x.unsettled)
	crash.Point(crash.SettingsStored)
	if c.Closed { // at once: strangers who stand in the middle of a log-in do not keep the account's next database open
		if err := x.databases.EmptyAtOnce(ctx, d); err != nil {
			return done, err
		}
		crash.Point(crash.SettingsClosed)
	}
	if err := x.reconnect(ctx, d); err != nil {
		return done, err
	}
	crash.Point(crash.SettingsReconnected)
	return ledger.Conclude(ctx, x.ledger, e, command.Configured{DatabaseOID: int64(d.OID)}, crash.SettingsReply)
}

// storeTries bounds how often a customer's first setting of the owner may come at the same moment as the service's.
const storeTries = 3

// storeSettings is one transaction: the defaults of the database, those of its owner's login there, its row, and its gate. A
// customer's own uncommitted change of a role in the way is ended.
func (x *Setter) storeSettings(ctx context.Context, d ledger.Database, c command.Configure) error {
	gate, err := x.shutStatements(ctx, d, c.Closed)
	if err != nil {
		return err
	}
	for range storeTries {
		var seen settingsSeen
		if seen, err = x.settingsSeen(ctx, d, false); err != nil {
			return err
		}
		statements := settingsPlan{Database: d, seen: seen, wanted: wantedOf(c)}.statements()
		err = x.ledger.PushThrough(ctx, func() error { return nil }, append(statements, gate...)...)
		if pg.State(err) != ledger.UniqueViolation {
			return err
		}
	}
	return ledger.Unavailable("a customer sets something for the owner at the same time; send the command again", err)
}

// shutStatements keep customers out of a database, or let them in again as far as it is open.
func (x *Setter) shutStatements(ctx context.Context, d ledger.Database, shut bool) ([]string, error) {
	if shut {
		return []string{"INSERT INTO pooler.shut (database) VALUES (" + pg.Quote(d.Name) + ") ON CONFLICT DO NOTHING"}, nil
	}
	if !d.Shut {
		return nil, nil
	}
	statements := []string{"DELETE FROM pooler.shut WHERE database = " + pg.Quote(d.Name)}
	if !d.Open {
		return statements, nil
	}
	names, err := x.databases.LoginsOf(ctx, d.ID, false)
	for _, name := range names {
		statements = append(statements, "ALTER ROLE "+pg.Ident(name)+" LOGIN")
	}
	return statements, err
}

// settingsTime bounds one look at settings, and the wait for a connection.
const settingsTime = 5 * time.Second

// Settings tells what is in force in a database. A default in PostgreSQL's own configuration file is not seen.
func (x *Setter) Settings(ctx context.Context, q command.Settings) (in command.SettingsInForce, err error) {
	ctx, cancel := context.WithTimeout(ctx, settingsTime)
	defer cancel()
	d, err := x.ledger.InService(ctx, string(q.DatabaseID))
	if err != nil {
		return in, err
	}
	seen, err := x.settingsSeen(ctx, d, true)
	if err != nil {
		return in, err
	}
	in = seen.inForce()
	in.DatabaseOID = int64(d.OID)
	const generation = `SELECT coalesce((SELECT g.applied FROM ledger.generation g WHERE g.kind = $1 AND g.resource = $2), 0),
		(SELECT count(*)` + olderSessions + ` AND d.id = $3)`
	about := command.Configure{DatabaseID: q.DatabaseID}.About()
	err = x.db.QueryRowContext(ctx, generation, string(about.Kind), about.Resource, d.ID).Scan(&in.Generation, &in.Pending)
	return in, err
}
