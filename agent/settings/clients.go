package settings

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
)

// keepers are, by database, the clients of PgBouncer that it remembers the default_transaction_read_only of before a change for.
// Nobody else needs to know them: a successor takes those that it finds.
type keepers map[string]change

type change struct {
	since   time.Time // when the settings changed
	name    string    // of the database
	clients []string
}

// gone are the changes whose clients of before have all ended.
func (k keepers) gone() keepers {
	ended := maps.Clone(k)
	maps.DeleteFunc(ended, func(_ string, one change) bool { return len(one.clients) > 0 })
	return ended
}

// renewClients ends such clients, each when it is in no transaction: those that were there when the loop first saw the change.
func (x *Setter) renewClients(ctx context.Context, known keepers) error {
	const query = `SELECT id, name, settings_since FROM ledger.database
		WHERE settings_since IS NOT NULL AND reconnected AND renewing`
	now := keepers{}
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var id string
		var one change
		err := rows.Scan(&id, &one.name, &one.since)
		now[id] = one
		return err
	}, query)
	if err != nil {
		return err
	}
	maps.DeleteFunc(known, func(id string, one change) bool { return !now[id].since.Equal(one.since) })
	maps.DeleteFunc(now, func(id string, _ change) bool { _, noted := known[id]; return noted })
	if err := x.noteKeepers(ctx, known, now); err != nil {
		return err
	}
	return x.endKeepers(ctx, known)
}

// noteKeepers adds the changes that are seen for the first time, with the clients that there are.
func (x *Setter) noteKeepers(ctx context.Context, known, fresh keepers) error {
	if len(fresh) == 0 {
		return nil
	}
	names := make([]string, 0, len(fresh))
	for _, one := range fresh {
		names = append(names, one.name)
	}
	clients, err := x.pooler.Keeping(ctx, names)
	if err != nil {
		return err
	}
	for id, one := range fresh {
		one.clients = clients[one.name]
		known[id] = one
	}
	return nil
}

const (
	// quietTime is how long a client has sent nothing before it is ended; so it is in nobody's way.
	quietTime = 2 * time.Second
	// busyTime is how long one is waited for that never stops for so long. Then it is ended in any moment between two transactions.
	busyTime = 15 * time.Second
)

func (x *Setter) endKeepers(ctx context.Context, known keepers) error {
	var patient, late []string
	for _, one := range known {
		if time.Since(one.since) < busyTime {
			patient = append(patient, one.clients...)
		} else {
			late = append(late, one.clients...)
		}
	}
	left, err := x.pooler.EndIdle(ctx, patient, quietTime)
	if err != nil {
		return err
	}
	busy, err := x.pooler.EndIdle(ctx, late, 0)
	if err != nil {
		return err
	}
	left = append(left, busy...)
	slices.Sort(left)
	for id, one := range known {
		one.clients = slices.DeleteFunc(one.clients, func(client string) bool {
			_, still := slices.BinarySearch(left, client)
			return !still
		})
		known[id] = one
	}
	return nil
}
