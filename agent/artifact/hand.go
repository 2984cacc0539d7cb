package artifact

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// handOver makes of a copy that was compared what a switch puts in the place of a database: everything belongs to whom it belongs
// now, with all privileges, and that is proved. First it shuts the login, and nothing of the customer's runs any more. Nothing is
// said about the backup where a role has gone meanwhile that was to have something: the next attempt does without.
func (b *Backuper) handOver(
	ctx context.Context, copied *isolated, req LoadRequest, set *fileSet, crash func(string),
) (made sidecar.Result, err error) {
	if err := copied.shut(ctx); err != nil {
		return made, err
	}
	crash("backup.verify.shut")
	roles, err := standingFor(ctx, copied.admin, req)
	if err != nil {
		return made, err
	}
	made, err = b.hand(ctx, copied, roles, set)
	if err != nil {
		return made, unlessGone(ctx, copied.admin, roles, unsuited(err))
	}
	crash("backup.verify.granted")
	err = b.prove(ctx, copied, roles, set, func() { crash("backup.verify.proving") })
	return made, unlessGone(ctx, copied.admin, roles, err)
}

// unlessGone makes nothing of BACKUP_NOT_VERIFIED where not all roles stand any more.
func unlessGone(ctx context.Context, admin *sql.DB, roles sidecar.Roles, err error) error {
	if !fault.Has(err, fault.BackupNotVerified) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if stand, unseen := roles.Stand(ctx, admin); unseen != nil || !stand {
		return fmt.Errorf("roles were removed while the copy was made: %v", err) //nolint:errorlint // it means nothing any more
	}
	return err
}

// shut lets nobody log in as the copy's login any more, and ends its sessions. The role stays as the copy's mark.
func (i *isolated) shut(ctx context.Context) error {
	err := pg.InTransaction(ctx, i.admin, joblogin.LockWithin(joblogin.RunPatience),
		`ALTER ROLE `+dumpsql.QuoteIdentifier(i.name())+` NOLOGIN NOBYPASSRLS PASSWORD NULL`)
	if err != nil {
		return fmt.Errorf("shut the copy's login: %w", err)
	}
	return i.endCopy(ctx)
}

// hand gives the copy's objects to whom they belong, with all privileges.
func (b *Backuper) hand(
	ctx context.Context, copied *isolated, roles sidecar.Roles, set *fileSet,
) (made sidecar.Result, err error) {
	conn, err := b.cfg.connect(ctx, copied.name(), copied.op)
	if err != nil {
		return made, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // all is committed, or the copy is dropped
	text, err := set.schema()
	if err != nil {
		return made, err
	}
	whole := sidecar.Copy{Database: copied.name(), Login: copied.name(), Roles: roles, LargeObjects: set.manifest.LargeObjects}
	return whole.Apply(ctx, conn, text)
}

// passes reports whether the cause of a failed statement says nothing about the statement, so that another attempt may succeed.
func passes(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return load.Transient(refused.Code) || inTheWay(refused.Code)
	}
	var broken *pgconn.ConnectError
	return errors.As(err, &broken) || pgconn.Timeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF)
}

// prove dumps the schema of the copy as a backup does, and holds it against the sidecar. It calls begun when the login stands.
func (b *Backuper) prove(ctx context.Context, copied *isolated, roles sidecar.Roles, set *fileSet, begun func()) error {
	return b.cfg.with(copied.name(), copied.op, func(db *sql.DB) (err error) {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return fmt.Errorf("begin snapshot: %w", err)
		}
		defer tx.Rollback()
		login := &dumpLogin{cfg: &b.cfg, op: copied.op}
		run := pgDump{cfg: &b.cfg, database: copied.name(), op: copied.op, login: login}
		if err := tx.QueryRowContext(ctx, `SELECT pg_export_snapshot()`).Scan(&run.snapshot); err != nil {
			return fmt.Errorf("export snapshot: %w", err)
		}
		defer func() { err = errors.Join(err, login.drop(ctx)) }()
		if err := login.create(ctx, copied.name(), nil); err != nil {
			return err
		}
		begun()
		var found []sidecar.Difference
		var then, now sidecar.Origin
		err = run.run(ctx, func(ofCopy io.Reader) error {
			text, err := set.schema()
			if err != nil {
				return err
			}
			then, text = sidecar.OriginOf(text)
			now, ofCopy = sidecar.OriginOf(ofCopy)
			found, err = roles.Compare(text, ofCopy)
			return err
		}, "--schema-only")
		if err == nil && len(set.manifest.LargeObjects) > 0 {
			found, err = addLargeObjects(ctx, tx, roles, set, found)
		}
		if err == nil && len(found) > 0 {
			return differs(found, then, now)
		}
		return err
	})
}

// addLargeObjects compares who may use the large objects, which neither dump says.
func addLargeObjects(
	ctx context.Context, tx *sql.Tx, roles sidecar.Roles, set *fileSet, found []sidecar.Difference,
) ([]sidecar.Difference, error) {
	ofCopy, err := largeObjectAccess(ctx, tx)
	if err != nil {
		return nil, err
	}
	return append(found, roles.CompareLargeObjects(set.manifest.LargeObjects, ofCopy)...), nil
}

// keep records, durably, that the copy is whole, unless PostgreSQL has recovered from a crash since the copy was begun.
func (i *isolated) keep(ctx context.Context, account id.AccountID, loaded *Loaded, began time.Time) error {
	var oid uint32
	const query = `SELECT oid, pg_database_size(oid) FROM pg_database WHERE datname = $1`
	if err := i.admin.QueryRowContext(ctx, query, i.name()).Scan(&oid, &loaded.SizeBytes); err != nil {
		return fmt.Errorf("look at the copy: %w", err)
	}
	told, err := json.Marshal(loaded)
	if err != nil {
		return err
	}
	const ready = `UPDATE ledger.copy SET oid = $2, ready = $3, ready_at = clock_timestamp(), account_id = $5
		WHERE name = $1 AND EXISTS (
			SELECT FROM pg_stat_activity WHERE backend_type = 'checkpointer' AND backend_start = $4)`
	done, err := i.admin.ExecContext(ctx, ready, i.name(), oid, string(told), began, string(account))
	if err != nil {
		return fmt.Errorf("keep the copy: %w", err)
	}
	if n, _ := done.RowsAffected(); n == 0 { // PostgreSQL always tells
		return errors.New("PostgreSQL went down while the copy was made")
	}
	return nil
}

// loaded looks for the copy of an operation that is whole.
func (b *Backuper) loaded(ctx context.Context, op id.OperationID) (loaded Loaded, ready bool, err error) {
	const query = `SELECT ready FROM ledger.copy WHERE operation_id = $1 AND purpose = $2 AND ready IS NOT NULL
		AND (until_closed OR replaced IS NOT NULL)`
	err = b.cfg.with(b.cfg.Maintenance, op, func(admin *sql.DB) error {
		told, err := pg.One[string](ctx, admin, query, string(op), restoring.name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			ready, err = true, json.Unmarshal([]byte(told), &loaded)
		}
		return err
	})
	return loaded, ready, err
}

// replacedBy is the oid of the database in whose place a copy is now; 0: none.
func replacedBy(ctx context.Context, admin *sql.DB, copied string) (oid uint32, err error) {
	err = admin.QueryRowContext(ctx, `SELECT coalesce(replaced, 0) FROM ledger.copy WHERE name = $1`, copied).Scan(&oid)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return oid, err
}

// standsAs is the database that a mark keeps: the copy itself or, once that has another's place, what it has replaced.
func standsAs(ctx context.Context, admin *sql.DB, copied string) (name string, err error) {
	replaced, err := replacedBy(ctx, admin, copied)
	if err != nil || replaced == 0 {
		return copied, err
	}
	names, err := pg.Column(ctx, admin, `SELECT datname FROM pg_database WHERE oid = $1 AND datname ~ '^replaced_[0-9a-f]{32}$'`,
		replaced)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}
