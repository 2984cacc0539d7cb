package move

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/server"
)

func TestVersionsThatADatabaseMayMoveTo(t *testing.T) {
	for _, c := range []struct {
		has, back, to int
		says          string // empty: it may
	}{
		{16, 0, 16, ""}, {16, 0, 17, ""}, {16, 0, 18, ""},
		{17, 0, 16, "older than the 17"}, {18, 0, 17, "older than the 18"},
		{17, 16, 17, ""}, {17, 16, 16, ""}, {17, 16, 18, "confirm-upgrade"},
		{18, 16, 18, ""}, {18, 16, 16, ""}, {18, 16, 17, "go back to that"}, {18, 17, 16, "go back to that"},
	} {
		err := MayBecome(database.Record{PostgresVersion: c.has, WayBack: c.back}, c.to)
		switch {
		case c.says == "" && err == nil:
		case c.says != "" && fault.Has(err, fault.ValidationError) && strings.Contains(err.Error(), c.says):
		default:
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Wherever a database moves to that it may, its way back leads to the version that it had before its last upgrade, and whoever
// takes it ends where the upgrade began.
func TestAWayBackLeadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := database.Record{PostgresVersion: rapid.IntRange(pgversion.Oldest, pgversion.Newest).Draw(t, "version")}
		for range 20 {
			before, to := r, rapid.IntRange(pgversion.Oldest, pgversion.Newest).Draw(t, "to")
			if rapid.Bool().Draw(t, "confirmed") {
				r.WayBack = 0
			}
			if MayBecome(r, to) != nil {
				continue
			}
			open := r.WayBack
			Become(&r, to)
			switch {
			case r.PostgresVersion != to:
				t.Fatalf("it is of %d, and has moved to %d", r.PostgresVersion, to)
			case to > before.PostgresVersion && r.WayBack != before.PostgresVersion,
				to == before.PostgresVersion && r.WayBack != open, to < before.PostgresVersion && (to != open || r.WayBack != 0):
				t.Fatalf("from %+v to %+v", before, r)
			}
			if r.WayBack != 0 && (r.WayBack >= r.PostgresVersion || MayBecome(r, r.WayBack) != nil) {
				t.Fatalf("there is no way back of %+v", r)
			}
		}
	})
}

func TestServersToWhichWaysBackLead(t *testing.T) {
	on := func(name string, version int, enabled bool) server.Server {
		return server.Server{ID: id.ServerID(name), Name: name, PostgresVersion: version, Enabled: enabled}
	}
	var many []database.Record
	for i := range MostWaiting {
		many = append(many, database.Record{ID: id.DatabaseID(fmt.Sprint("id", i)), Name: fmt.Sprint("shop", i)})
	}
	last := on("old", 16, true)
	ends := []string{"shop0 (id0) leads", "confirm-upgrade"}
	for name, c := range map[string]struct {
		all     []server.Server
		waiting []database.Record
		says    []string // none: it may go
	}{
		"nobody waits":          {[]server.Server{last}, nil, nil},
		"another of that":       {[]server.Server{last, on("other", 16, true)}, many, nil},
		"the last one":          {[]server.Server{last, on("new", 18, true)}, many[:1], ends},
		"the other is disabled": {[]server.Server{last, on("other", 16, false)}, many[:2], []string{"shop0 (id0), shop1 (id1) leads"}},
		"more than are named":   {[]server.Server{last}, many, []string{"shop4 (id4), others leads"}},
	} {
		err := KeepsWaysBack(last, c.all, c.waiting)
		if (err == nil) != (c.says == nil) || err != nil && !fault.Has(err, fault.ValidationError) {
			t.Errorf("%s: %v", name, err)
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
