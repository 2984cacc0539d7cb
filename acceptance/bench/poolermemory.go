package main

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// poolerMemory adds entries, logins and limits one after the other, each to a PgBouncer that has just started, and reads what it
// needs after one reload. Nobody has logged in.
func (b *bench) poolerMemory(ctx context.Context, p *pooler.Pooler, settings pooler.Settings) ([]row, error) {
	none, entries, logins := pooler.State{Settings: settings}, manyEntries(settings), manyEntries(settings)
	for i := range entries.Entries {
		entries.Entries[i].Logins = nil
		for j := range logins.Entries[i].Logins {
			logins.Entries[i].Logins[j].MaxConnections = 0
		}
	}
	var used []amount
	for _, state := range []pooler.State{none, entries, logins, manyEntries(settings)} {
		err := b.withPooler(ctx, p, state, func(running *cluster.Pooler) error {
			if err := p.Apply(ctx, state); err != nil {
				return err
			}
			resident, err := status(running.Pid(), "VmRSS")
			used = append(used, resident)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return memoryOf(used), nil
}

// mostForALogin is what a login without a limit may need before anybody uses it. A line in [users] takes more on every version.
const mostForALogin = 3 * kibibyte

func memoryOf(used []amount) []row {
	const allEntries, allLogins = 2 * manyDatabases, manyDatabases * loginsOfEach
	var rows []row
	for i, added := range []struct {
		what       string
		many, most amount
	}{
		{fmt.Sprintf("%d databases, which have %d entries", manyDatabases, allEntries), allEntries, 0},
		{fmt.Sprintf("their %d logins, without limits", allLogins), allLogins, mostForALogin},
		{"a limit of each login", allLogins, 0},
	} {
		one := told("  of that for one", (used[i+1]-used[i])/added.many, nil)
		if added.most > 0 {
			one = below(one.measure, (used[i+1]-used[i])/added.many, nil, added.most)
		}
		rows = append(rows, told("memory of PgBouncer with "+added.what, used[i+1], used[i]), one)
	}
	return rows
}
