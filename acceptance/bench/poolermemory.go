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
	var used []int64
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
const mostForALogin = 3 << 10

func memoryOf(used []int64) []row {
	const allEntries, allLogins = 2 * manyDatabases, manyDatabases * loginsOfEach
	var rows []row
	for i, added := range []struct {
		what       string
		many, most int64
	}{
		{fmt.Sprintf("%d databases, which have %d entries", manyDatabases, allEntries), allEntries, 0},
		{fmt.Sprintf("their %d logins, without limits", allLogins), allLogins, mostForALogin},
		{"a limit of each login", allLogins, 0},
	} {
		all := row{measure: "memory of PgBouncer with " + added.what, met: true}
		all.ours, all.baseline = amount(used[i+1]).String(), amount(used[i]).String()
		perOne := (used[i+1] - used[i]) / added.many
		one := row{measure: "  of that for one", ours: kibibytes(perOne), met: true}
		if added.most > 0 {
			one.limit, one.met = "< "+kibibytes(added.most), perOne < added.most
		}
		rows = append(rows, all, one)
	}
	return rows
}

func kibibytes(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }
