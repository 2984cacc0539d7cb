package copies

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/fault"
)

// handOver makes of a copy that was compared what a switch puts in the place of a database: everything belongs to whom it belongs
// now, with all privileges, and that is proved. First it shuts the login, and nothing of the customer's runs any more. Nothing is
// said about the backup where a role has gone meanwhile that was to have something: the next attempt does without.
func (x *Copies) handOver(
	ctx context.Context, copied *Isolated, req Request, set *fileSet, crash func(string),
) (made sidecar.Result, err error) {
	if err := copied.shut(ctx); err != nil {
		return made, err
	}
	crash("backup.verify.shut")
	roles, err := standingFor(ctx, copied.admin, req)
	if err != nil {
		return made, err
	}
	err = x.withLocks(ctx, copied, func() error {
		made, err = x.hand(ctx, copied, roles, set)
		if err != nil {
			return unsuited(err)
		}
		crash("backup.verify.granted")
		return x.prove(ctx, copied, roles, set, func() { crash("backup.verify.proving") })
	})
	return made, unlessGone(ctx, copied.admin, roles, err)
}

// unlessGone makes nothing of BACKUP_NOT_VERIFIED where not all roles stand any more.
func unlessGone(ctx context.Context, admin *sql.DB, roles sidecar.Roles, err error) error {
	if !fault.Has(err, fault.BackupNotVerified) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	if stand, unseen := roles.Stand(ctx, admin); unseen != nil || !stand {
		return fmt.Errorf("roles were removed while the copy was made: %v", err) //nolint:errorlint // it means nothing any more
	}
	return err
}

// shut lets nobody log in as the copy's login any more, and ends its sessions. The role stays as the copy's mark.
func (i *Isolated) shut(ctx context.Context) error {
	err := pg.InTransaction(ctx, i.admin, joblogin.LockWithin(joblogin.RunPatience),
		`ALTER ROLE `+dumpsql.QuoteIdentifier(i.Name())+` NOLOGIN NOBYPASSRLS PASSWORD NULL`)
	if err != nil {
		return fmt.Errorf("shut the copy's login: %w", err)
	}
	return i.endCopy(ctx)
}

// hand gives the copy's objects to whom they belong, with all privileges.
func (x *Copies) hand(
	ctx context.Context, copied *Isolated, roles sidecar.Roles, set *fileSet,
) (made sidecar.Result, err error) {
	conn, err := x.Server.Connect(ctx, copied.Name(), copied.op)
	if err != nil {
		return made, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // all is committed, or the copy is dropped
	text, err := set.schema()
	if err != nil {
		return made, err
	}
	whole := sidecar.Copy{Database: copied.Name(), Login: copied.Name(), Roles: roles, LargeObjects: set.manifest.LargeObjects}
	return whole.Apply(ctx, conn, text)
}

// passes reports whether the cause of a failed statement says nothing about the statement, so that another attempt may succeed.
func passes(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return load.Transient(refused.Code) || load.InTheWay(refused.Code)
	}
	var broken *pgconn.ConnectError
	return errors.As(err, &broken) || pgconn.Timeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF)
}

// prove dumps the schema of the copy as a backup does, and holds it against the sidecar. It calls begun when its session stands.
// Nobody else is in the copy.
func (x *Copies) prove(ctx context.Context, copied *Isolated, roles sidecar.Roles, set *fileSet, begun func()) error {
	return x.Server.With(copied.Name(), copied.op, func(db *sql.DB) (err error) {
		dump := pgdump.New(x.Tool, x.Server, copied.Name(), copied.op)
		defer func() { err = errors.Join(err, dump.DropLogin(ctx)) }()
		if err := dump.MakeLogin(ctx, nil); err != nil {
			return err
		}
		session, err := dump.Connect(ctx)
		if err != nil {
			return err
		}
		begun()
		var found []sidecar.Difference
		var then, now sidecar.Origin
		err = dump.Run(ctx, session, func(ofCopy io.Reader) error {
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
			found, err = addLargeObjects(ctx, db, roles, set, found)
		}
		if err == nil && len(found) > 0 {
			return differs(found, then, now)
		}
		return err
	})
}

// addLargeObjects compares who may use the large objects, which neither dump says.
func addLargeObjects(
	ctx context.Context, db *sql.DB, roles sidecar.Roles, set *fileSet, found []sidecar.Difference,
) ([]sidecar.Difference, error) {
	ofCopy, err := content.LargeObjectAccess(ctx, db)
	if err != nil {
		return nil, err
	}
	return append(found, roles.CompareLargeObjects(set.manifest.LargeObjects, ofCopy)...), nil
}
