package relocate

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// copyRow is a copy that is whole.
type copyRow struct {
	name      string // its own, and that of the role that is its mark
	operation string
	oid       uint32
	bytes     int64
	reopen    sql.NullBool  // whether the database was open when it was shut for the switch
	replaced  uint32        // what the copy has replaced; 0: nothing yet
	whole     *backup.Whole // what a database that moves here brings along; nil: the copy was not made for a move
	brought   []string      // the statements for that
}

func (s copyRow) switched() bool { return s.replaced != 0 }

// replacedName is what the database is called whose place the copy takes.
func (s copyRow) replacedName() string { return "replaced_" + strings.TrimPrefix(s.name, "restore_") }

// readyCopy is the copy that an operation has made for a database.
func (x *Relocator) readyCopy(ctx context.Context, operation string, d ledger.Database) (copyRow, error) {
	const query = `SELECT name, oid, (ready ->> 'sizeBytes')::bigint, coalesce(ready ->> 'whole', 'null'), reopen,
			coalesce(replaced, 0)
		FROM ledger.copy WHERE operation_id = $1 AND database_id = $2 AND purpose = 'restore' AND ready IS NOT NULL
			AND (until_closed OR replaced IS NOT NULL)`
	s := copyRow{operation: operation}
	var whole []byte
	err := x.db.QueryRowContext(ctx, query, operation, d.ID).Scan(&s.name, &s.oid, &s.bytes, &whole, &s.reopen, &s.replaced)
	if errors.Is(err, sql.ErrNoRows) {
		err = command.Refuse(command.ReasonNotFound, "the operation has no copy that is ready")
	}
	if err == nil {
		err = json.Unmarshal(whole, &s.whole)
	}
	return s, err
}

// hasSwitched reports whether an operation's copy has the place of its database, and that was the operation's purpose.
func (x *Relocator) hasSwitched(ctx context.Context, operation string) (bool, error) {
	const query = `SELECT EXISTS (SELECT FROM ledger.copy WHERE operation_id = $1 AND replaced IS NOT NULL)
		AND NOT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2)`
	return pg.One[bool](ctx, x.db, query, operation, command.Step(command.Switch{Moving: true}))
}

// canBeReplaced refuses, while customers are served, what would fail once they are shut out.
func (x *Relocator) canBeReplaced(ctx context.Context, d ledger.Database, s copyRow) error {
	const stands = `SELECT EXISTS (SELECT FROM pg_database p WHERE p.oid = $1 AND p.datname = $2)
		AND EXISTS (SELECT FROM pg_database p WHERE p.oid = $3 AND p.datname = $4)`
	both, err := pg.One[bool](ctx, x.db, stands, d.OID, d.Name, s.oid, s.name)
	if err != nil {
		return err
	}
	if !both {
		return command.Refuse(command.ReasonFailed, "the database or its copy is no longer the one that the agent has made")
	}
	const labels = `SELECT EXISTS (SELECT FROM pg_shseclabel WHERE classoid = 'pg_database'::regclass AND objoid = $1)`
	labeled, err := pg.One[bool](ctx, x.db, labels, d.OID)
	if err != nil {
		return err
	}
	if labeled {
		return command.Refuse(command.ReasonFailed, "the database has a security label, which its copy cannot be given")
	}
	if err := x.canBeGiven(ctx, d); err != nil {
		return err
	}
	return x.awaitAlone(ctx, d)
}

// canBeGiven refuses what an administrator has set or granted, and the agent may not.
func (x *Relocator) canBeGiven(ctx context.Context, d ledger.Database) error {
	w, err := x.wholeOf(ctx, d)
	if err != nil {
		return err
	}
	for _, one := range w.settings {
		ours, err := stored.Storable(ctx, x.db, one.name)
		if err != nil {
			return err
		}
		if !ours {
			return command.Refuse(command.ReasonFailed, "an administrator has set %s for the database or a login in it, which the"+
				" agent may not; reset it, and set it again after the restore", one.name)
		}
	}
	for _, g := range w.grants {
		const can = `SELECT coalesce((SELECT pg_has_role(oid, 'SET') FROM pg_roles WHERE rolname = $1), false)`
		ours, err := pg.One[bool](ctx, x.db, can, g.grantor)
		if err != nil {
			return err
		}
		if !ours {
			return command.Refuse(command.ReasonFailed, "role %s, which the agent has not made, has granted privileges on the database;"+
				" revoke them, and grant them again after the restore", g.grantor)
		}
	}
	return nil
}

// lasting are those in a database whom the agent cannot end, or must not, and prepared transactions.
const lasting = `SELECT coalesce(a.usename, a.backend_type) FROM pg_stat_activity a LEFT JOIN pg_roles r ON r.oid = a.usesysid
		WHERE a.datid = $1 AND a.backend_type NOT IN ('autovacuum worker', 'parallel worker')
		  AND (a.backend_type <> 'client backend' OR r.rolsuper OR a.usename ~ '` + setup.JobLogins + `'
			OR a.usename = '` + setup.AgentLogin + `')
	UNION SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = $2 ORDER BY 1`

// mostNamed bounds how many of them a refusal names. The owner of a database gives prepared transactions their names.
const mostNamed = 5

// awaitAlone waits until none of these is in the database any more. ReasonBusy: one stays.
func (x *Relocator) awaitAlone(ctx context.Context, d ledger.Database) error {
	return x.awaitNone(ctx, "still in it", lasting, d.OID, d.Name)
}

// awaitNone waits, not for long, until a query names nobody any more. ReasonBusy: it still does.
func (x *Relocator) awaitNone(ctx context.Context, where, query string, args ...any) error {
	limited, cancel := context.WithTimeout(ctx, aloneTime)
	defer cancel()
	var others []string
	err := x.ledger.Until(limited, "others are "+where, func() (int, error) {
		found, err := pg.Column(limited, x.db, query, args...)
		if err == nil {
			others = found
		}
		return len(others), err
	})
	if err != nil && limited.Err() != nil {
		return busy(err, ": "+where+": "+strings.Join(others[:min(len(others), mostNamed)], ", "))
	}
	return err
}

func busy(cause error, who string) error {
	return &command.Refusal{Reason: command.ReasonBusy, Cause: cause, Message: "the database could not be had alone in time" + who}
}

// buryIn gives to the owner what roles have in the copy that were removed since it was made.
func (x *Relocator) buryIn(ctx context.Context, d ledger.Database, s copyRow) error {
	const query = `SELECT DISTINCT r.rolname FROM pg_shdepend s JOIN ledger.dead_role dead ON dead.oid = s.refobjid
		JOIN pg_roles r ON r.oid = dead.oid WHERE s.dbid = $1 AND s.refclassid = 'pg_authid'::regclass ORDER BY 1`
	dead, err := pg.Column(ctx, x.db, query, s.oid)
	if err != nil || len(dead) == 0 {
		return err
	}
	owner := database.RoleNames(id.DatabaseID(d.ID), d.Name).Owner
	statements := []string{ledger.Firmly}
	for _, name := range dead {
		statements = append(statements, "REASSIGN OWNED BY "+pg.Ident(name)+" TO "+pg.Ident(owner), "DROP OWNED BY "+pg.Ident(name))
	}
	bury := func() error {
		return x.ledger.Inside.Run(ctx, func() error { return x.server.Once(ctx, s.name, statements...) })
	}
	err = bury()
	for began := time.Now(); ledger.InTheWay(err) && time.Since(began) < ledger.Insistence; err = bury() { // who drops such roles
		if err := loop.Wait(ctx, ledger.InsistPause); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("roles that are gone, in the copy: %w", err)
	}
	return nil
}
