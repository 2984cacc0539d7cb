package content

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

//go:embed largeobjects.sql
var readLargeObjects string

// LargeObjectAccess reads who owns the large objects and what others may do with them. The error is a *TooMuchError where that
// is too much.
func LargeObjectAccess(ctx context.Context, q pg.Querier) ([]backup.LargeObjects, error) {
	var list []backup.LargeObjects
	const what = "owners and privileges of its large objects"
	err := ReadWithin(ctx, q, what, Most, readLargeObjects, func(rows *sql.Rows) (int, error) {
		next, grant := backup.LargeObjects{}, backup.Grant{Kind: "large object"}
		var grantee sql.NullString
		err := rows.Scan(&next.First, &next.Last, &next.Owner, &grant.Grantor, &grantee, pq.Array(&grant.Privileges),
			pq.Array(&grant.WithOption))
		if len(list) == 0 || list[len(list)-1].First != next.First {
			list = append(list, next)
		}
		if grant.Grantee = grantee.String; grantee.Valid {
			last := &list[len(list)-1]
			last.Grants = append(last.Grants, grant)
		}
		return len(next.Owner) + SizeOf(grant), err
	})
	return list, err
}

// objectPiece is how much of a large object is read at once.
const objectPiece = 64 << 10

// largeObjectDigest reads the large objects of a copy. They belong to the copy's login, whose rights the agent has.
func largeObjectDigest(ctx context.Context, q pg.Querier) (backup.TableDigest, error) {
	var sum backup.Sum
	var long []uint32
	const short = `SELECT oid, lo_get(oid, 0, $1) FROM pg_largeobject_metadata`
	rows, err := q.QueryContext(ctx, short, objectPiece)
	if err != nil {
		return backup.TableDigest{}, reading(err)
	}
	defer rows.Close()
	for rows.Next() {
		var oid uint32
		var content sql.RawBytes
		if err := rows.Scan(&oid, &content); err != nil {
			return backup.TableDigest{}, reading(err)
		}
		if len(content) == objectPiece {
			long = append(long, oid)
			continue
		}
		h := backup.LargeObjectHash(oid)
		h.Write(content)
		sum.Add(h.Sum(nil))
	}
	if err := rows.Err(); err != nil {
		return backup.TableDigest{}, reading(err)
	}
	for _, oid := range long {
		if err := addLong(ctx, q, oid, &sum); err != nil {
			return backup.TableDigest{}, reading(err)
		}
	}
	return sum.Digest(nil), nil
}

// addLong reads a large object of more than one piece.
func addLong(ctx context.Context, q pg.Querier, oid uint32, sum *backup.Sum) error {
	h := backup.LargeObjectHash(oid)
	for at := int64(0); ; at += objectPiece {
		var piece []byte
		if err := q.QueryRowContext(ctx, `SELECT lo_get($1, $2, $3)`, oid, at, objectPiece).Scan(&piece); err != nil {
			return err
		}
		h.Write(piece)
		if len(piece) < objectPiece {
			sum.Add(h.Sum(nil))
			return nil
		}
	}
}

func reading(err error) error { return fmt.Errorf("read large objects: %w", err) }
