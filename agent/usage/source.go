package usage

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/id"
)

// Source is where a meter of a server looks: the ledger says which databases there are, and the pooler how they are used.
type Source struct {
	*ledger.Ledger
	Report *pooler.Report
}

// Look looks at all databases that are in service, without asking them.
func (s Source) Look(ctx context.Context) (map[id.DatabaseID]Sighting, error) {
	entries, err := s.Report.Entries(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[id.DatabaseID]Sighting{}
	err = pg.Each(ctx, s.DB(), func(rows *sql.Rows) error {
		var db id.DatabaseID
		var name string
		if err := rows.Scan(&db, &name); err != nil {
			return err
		}
		var d Sighting
		for i, entry := range pooler.EntryNames(name) {
			e := entries[entry]
			d.Active, d.Waiting, d.Counted[i] = d.Active+e.Active, d.Waiting+e.Waiting, e.Counters
		}
		seen[db] = d
		return nil
	}, "SELECT d.id, d.name FROM ledger.database d WHERE "+ledger.Serving)
	return seen, err
}
