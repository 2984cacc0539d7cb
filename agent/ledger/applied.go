package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// appliedTime bounds one statement about all databases, and the wait for a connection.
const appliedTime = 10 * time.Second

// Applied tells the generations of the last commands that were done and belong to no operation. It leaves out what is out of
// service, where none can be sent again.
func (l *Ledger) Applied(ctx context.Context, q command.AskApplied) (part command.Applied, err error) {
	const query = `SELECT d.id, g.kind, g.applied
		FROM (SELECT d.id FROM ledger.database d WHERE ` + Serving + ` AND d.id COLLATE "C" > $1
			ORDER BY d.id COLLATE "C" LIMIT $2) d
		LEFT JOIN ledger.generation g ON g.resource = 'database/' || d.id AND g.kind = ANY ($3) AND g.applied > 0
		ORDER BY d.id COLLATE "C"`
	ctx, cancel := context.WithTimeout(ctx, appliedTime)
	defer cancel()
	var kinds pq.StringArray
	for kind := range l.traits {
		if l.has(kind, OfNoOperation) {
			kinds = append(kinds, string(kind))
		}
	}
	part.Databases = []command.AppliedIn{}
	err = pg.Each(ctx, l.db, func(rows *sql.Rows) error {
		var db id.DatabaseID
		var kind sql.NullString
		var generation sql.NullInt64
		err := rows.Scan(&db, &kind, &generation)
		if n := len(part.Databases); n == 0 || part.Databases[n-1].DatabaseID != db {
			part.Databases = append(part.Databases, command.AppliedIn{DatabaseID: db, Generations: map[command.Kind]int64{}})
		}
		if kind.Valid {
			part.Databases[len(part.Databases)-1].Generations[command.Kind(kind.String)] = generation.Int64
		}
		return err
	}, query, string(q.After), command.AppliedAtOnce, kinds)
	part.More = len(part.Databases) == command.AppliedAtOnce
	return part, err
}
