package copies

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// compare observes the copy, as the agent and therefore without running any of the customer's code, and holds it against the
// manifest; without rows, all but the contents of its tables and large objects.
func (x *Copies) compare(ctx context.Context, copied *Isolated, set *fileSet, rows bool, tell jobs.Part) error {
	m := set.manifest.Manifest
	return x.Server.With(copied.Name(), copied.op, func(db *sql.DB) error {
		found, err := content.Observe(ctx, db)
		if err != nil {
			return err
		}
		if rows {
			connect := func(ctx context.Context) (*pgconn.PgConn, error) {
				return x.Server.Connect(ctx, copied.Name(), copied.op)
			}
			found.Rows = set.counted
			err = unreadable(content.Read(ctx, db, connect, m.Contents, &found, tell))
		} else {
			want := m.Contents
			found.Rows, found.Digests, found.LargeObjectDigest = want.Rows, want.Digests, want.LargeObjectDigest
		}
		if err != nil {
			return err
		}
		if found.Sequences, err = content.Sequences(ctx, db); err != nil {
			return err
		}
		unlike, err := backup.Compare(m, found)
		if err == nil && len(unlike) > 0 {
			err = backup.NotVerified(&unlikeError{unlike})
		}
		return err
	})
}

// leftOut adds to BACKUP_NOT_VERIFIED of a file that could not be loaded what no dump of the database holds: that is likely to be
// why.
func (x *Copies) leftOut(ctx context.Context, copied *Isolated, m backup.Manifest, err error) error {
	var known *fault.Error
	if !errors.As(err, &known) || known.Code != fault.BackupNotVerified {
		return err
	}
	unseen := x.Server.With(copied.Name(), copied.op, func(db *sql.DB) error {
		found, unseen := content.Observe(ctx, db)
		if unseen != nil {
			return unseen
		}
		lost, unseen := backup.LeftOut(m, found)
		if len(lost) > 0 {
			err = fault.Wrap(err, fault.BackupNotVerified, "%s; %s", known.Message, backup.Explain(lost))
		}
		return unseen
	})
	if unseen != nil {
		x.Log.Info("what the backup leaves out could not be read", zap.String("copy", copied.Name()), zap.Error(unseen))
	}
	return err
}

const insufficientPrivilege = "42501"

// unreadable takes a large object that its owner may not read for what only the file can have caused.
func unreadable(err error) error {
	if pq.As(err, insufficientPrivilege) != nil {
		return backup.NotVerified(err)
	}
	return err
}
