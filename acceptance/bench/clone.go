package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

const clonePause = 50 * time.Millisecond

// measureClone clones a database as it is now, through the API, from the request until the operation is seen to have succeeded:
// a dump, a copy that is compared, and the switch to it. By hand it is a dump into a new database, and a copy of its files, for
// which nobody may be in it. Nothing of that has a limit.
func measureClone(ctx context.Context, b *bench) ([]row, error) {
	text, err := b.withText(ctx)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"feature", "enable", "clone"}, {"enroll", "--database", string(text.ID), "--route", "clone"},
	} {
		if _, err := b.stack.Admin(ctx, args...); err != nil {
			return nil, err
		}
	}
	source, dropped := ident(text.Name), "DROP DATABASE IF EXISTS by_hand"
	piped := way{
		measured: func(int) error { return b.dumpInto(ctx, text.Name, "by_hand") },
		after:    func(int) error { return b.sql(ctx, dropped) },
	}
	files := way{
		before: func(int) error {
			return b.sql(ctx, fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS false", source),
				"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = "+pq.QuoteLiteral(text.Name))
		},
		measured: func(int) error { return b.sql(ctx, "CREATE DATABASE by_hand TEMPLATE "+source) },
		after: func(int) error {
			return b.sql(ctx, dropped, fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS true", source))
		},
	}
	against, err := inTurn((b.runs+1)/2, way{measured: func(n int) error { return b.client.cloneOf(ctx, text.ID, n) }}, piped)
	if err != nil {
		return nil, err
	}
	copied := turns{}
	for n := range against.ours {
		if err := files.clock(n, &copied.byHand); err != nil {
			return nil, err
		}
	}
	return []row{
		toldOf(fmt.Sprintf("clone of a database of %s against pg_dump | psql", amount(text.size)), against),
		toldOf("  against createdb -T of a database that nobody is in", turns{against.ours, copied.byHand}),
	}, nil
}

func (c client) cloneOf(ctx context.Context, source id.DatabaseID, n int) error {
	name := fmt.Sprintf("clone-%d", n)
	made, err := c.Databases.Clone(ctx, source, wire.CloneDatabase{Name: name, DisplayName: name})
	if err != nil {
		return err
	}
	ended, err := c.Operations.Await(ctx, made.Operation.ID, clonePause)
	if err == nil && ended.Status != operation.Succeeded {
		err = fmt.Errorf("the clone is %s: %+v", ended.Status, ended.Error)
	}
	return err
}

// dumpInto fills a new database with a dump, without owners and privileges.
func (b *bench) dumpInto(ctx context.Context, from, to string) error {
	if err := b.sql(ctx, "CREATE DATABASE "+to+" TEMPLATE template0"); err != nil {
		return err
	}
	// A dump of a later pg_dump sets what an earlier server does not know.
	const script = `"$PG_DUMP" --no-owner --no-privileges "$1" | sed '1,30{/^SET transaction_timeout/d}' |
		"$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$2"`
	return b.script(ctx, script, b.at(from), b.at(to))
}
