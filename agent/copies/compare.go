package copies

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/backup"
)

// compare observes the copy, as the agent and therefore without running any of the customer's code, and holds it against the
// manifest; without rows, all but the contents of its tables and large objects.
func (x *Copies) compare(ctx context.Context, copied *Isolated, m backup.Manifest, rows bool, tell jobs.Part) error {
	return x.Server.With(copied.Name(), copied.op, func(db *sql.DB) error {
		found, err := content.Observe(ctx, db)
		if err != nil {
			return err
		}
		if rows {
			connect := func(ctx context.Context) (*pgconn.PgConn, error) {
				return x.Server.Connect(ctx, copied.Name(), copied.op)
			}
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
		if unlike := backup.Compare(m, found); len(unlike) > 0 {
			return backup.NotVerified(errors.New(backup.Summary(unlike)))
		}
		return nil
	})
}

const insufficientPrivilege = "42501"

// unreadable takes a large object that its owner may not read for what only the file can have caused.
func unreadable(err error) error {
	if pq.As(err, insufficientPrivilege) != nil {
		return backup.NotVerified(err)
	}
	return err
}
