package extension

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
)

// The spec's list, written a second time: order and versions.
func TestCatalog(t *testing.T) {
	var list []string
	for _, n := range Names {
		list = append(list, string(n)+" "+n.Version(16))
	}
	if got := strings.Join(list, ", "); got != "citext 1.6, pg_trgm 1.6, pgcrypto 1.3" {
		t.Error(got)
	}
	for major, want := range map[int]string{15: "", 17: "1.6", 18: "1.8", 19: "1.8"} {
		if v := Citext.Version(major); v != want {
			t.Errorf("citext on PostgreSQL %d: %q, want %q", major, v, want)
		}
	}
	if v := Name("postgis").Version(16); v != "" {
		t.Errorf("postgis %s", v)
	}
}

func TestCheck(t *testing.T) {
	for _, n := range Names {
		for _, c := range Install.Values() {
			if err := (Request{Extension: n, Change: c}).Check(); err != nil {
				t.Errorf("%s %s: %v", c, n, err)
			}
		}
	}
	for _, c := range []struct {
		field string
		r     Request
	}{
		{"extension", Request{Change: Install}}, {"extension", Request{Extension: "postgis", Change: Install}},
		{"extension", Request{Extension: "CITEXT", Change: Install}},
		{"kind", Request{Extension: Citext}}, {"kind", Request{Extension: Citext, Change: "drop"}},
	} {
		err := c.r.Check()
		if !fault.Has(err, fault.ValidationError) || err.(*fault.Error).Details[0].Field != c.field {
			t.Errorf("%+v: %v, want %s named", c.r, err, c.field)
		}
	}
}

func good() Scene {
	return Scene{Database: database.Record{RoleModel: database.Managed, Status: database.Active, PostgresVersion: 16}}
}

func fresh() Entry {
	return Entry{Name: PgTrgm, Available: true, Trusted: true, RestoreQualified: true, DefaultVersion: "1.6"}
}

func old() Entry {
	e := fresh()
	e.InstalledVersion, e.Schema = "1.3", "public"
	return e
}

// Every reason for which a request is refused, each alone beside a request that is admitted.
func TestAdmits(t *testing.T) {
	type line struct {
		why   string // a word of the message; empty where the request is admitted
		on    Change // empty: both
		scene func(*Scene)
		entry func(*Entry)
	}
	cases := []line{
		{},
		{why: "managed", scene: func(s *Scene) { s.Database.RoleModel = database.SingleLogin }},
		{why: "creating", scene: func(s *Scene) { s.Database.Status = database.Creating }},
		{why: "stopped", scene: func(s *Scene) { s.Database.Status = database.Stopped }},
		{why: "deleting", scene: func(s *Scene) { s.Database.Status = database.Deleting }},
		{why: "error", scene: func(s *Scene) { s.Database.Status = database.Error }},
		{why: "the kind restore is open", scene: func(s *Scene) { s.Open = "restore" }},
		{why: "the kind backup is open", scene: func(s *Scene) { s.Open = "backup" }},
		{why: "the kind extension is open", scene: func(s *Scene) { s.Open = "extension" }},
		{why: "logins", scene: func(s *Scene) { s.Change = "c" }},
		{why: "does not have", entry: func(e *Entry) { e.Available = false }},
		{why: "not trusted", entry: func(e *Entry) { e.Trusted = false }},
		{why: "the people who run the service can change that", entry: func(e *Entry) { e.RestoreQualified = false }},
		{why: "1.5; 1.6 is supported", entry: func(e *Entry) { e.DefaultVersion = "1.5" }},
		{why: "1.7; 1.6 is supported", entry: func(e *Entry) { e.DefaultVersion = "1.7" }},
		{why: "installed already", on: Install, entry: func(e *Entry) { e.InstalledVersion = "1.3" }},
		{why: "installed already", on: Install, entry: func(e *Entry) { e.InstalledVersion = "1.6" }},
		{why: "not installed", on: Upgrade, entry: func(e *Entry) { e.InstalledVersion, e.Schema = "", "" }},
		{why: "another schema", on: Upgrade, entry: func(e *Entry) { e.Schema = "app" }},
		{why: "already", on: Upgrade, entry: func(e *Entry) { e.InstalledVersion = "1.6" }},
		{scene: func(s *Scene) { s.Database.WayBack = 16 }},                 // which has the same pg_trgm
		{on: Upgrade, entry: func(e *Entry) { e.InstalledVersion = "1.9" }}, // whether PostgreSQL can is for the server to say
	}
	for _, c := range cases {
		for change, entry := range map[Change]Entry{Install: fresh(), Upgrade: old()} {
			if c.on != "" && c.on != change {
				continue
			}
			scene := good()
			if c.scene != nil {
				c.scene(&scene)
			}
			if c.entry != nil {
				c.entry(&entry)
			}
			err := scene.Admits(Request{Extension: PgTrgm, Change: change}, entry)
			if c.why == "" && err != nil {
				t.Errorf("%s: %v", change, err)
			}
			if c.why != "" && (!fault.Has(err, fault.ExtensionMutationUnavailable) || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("%s, %s: %v", change, c.why, err)
			}
		}
	}
}

// An extension that the older PostgreSQL has in another version stays as it is until an upgrade of PostgreSQL is confirmed.
func TestUpgradesThatPreventTheWayBack(t *testing.T) {
	e := old()
	e.Name, e.InstalledVersion, e.DefaultVersion = Citext, "1.6", "1.8"
	scene := good()
	for back, admitted := range map[int]bool{0: true, 16: false, 17: false} {
		scene.Database.PostgresVersion, scene.Database.WayBack = 18, back
		err := scene.Admits(Request{Extension: Citext, Change: Upgrade}, e)
		if (err == nil) != admitted || err != nil && !strings.Contains(err.Error(), "citext 1.6: confirm the upgrade") {
			t.Errorf("with a way back to %d: %v", back, err)
		}
	}
}

func TestAdmitsReplay(t *testing.T) {
	first := Request{Extension: Citext, Change: Install}
	known := idempotency.Record{Fingerprint: first.Fingerprint()}
	if err := first.AdmitsReplay(known); err != nil {
		t.Error(err)
	}
	for _, other := range []Request{{Extension: Citext, Change: Upgrade}, {Extension: PgCrypto, Change: Install}} {
		if err := other.AdmitsReplay(known); !fault.Has(err, fault.ExtensionMutationUnavailable) {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

// A trial proves nothing about another version of the extension or of PostgreSQL.
func TestProven(t *testing.T) {
	passed := Qualification{Extension: Citext, Version: "1.6", ServerVersion: "16.14", Qualified: true}
	failed := Qualification{Extension: PgTrgm, Version: "1.6", ServerVersion: "16.14", Message: "why"}
	trials := []Qualification{failed, passed}
	if !Proven(trials, Citext, "1.6", "16.14") {
		t.Error("what was proven is not")
	}
	for name, proven := range map[string]bool{
		"no trial":         Proven(nil, Citext, "1.6", "16.14"),
		"a failed trial":   Proven(trials, PgTrgm, "1.6", "16.14"),
		"another one's":    Proven(trials, PgCrypto, "1.6", "16.14"),
		"a new version":    Proven(trials, Citext, "1.7", "16.14"),
		"a new PostgreSQL": Proven(trials, Citext, "1.6", "16.15"),
		"not there":        Proven([]Qualification{{Extension: Citext, Qualified: true}}, Citext, "", ""),
	} {
		if proven {
			t.Errorf("%s: proven", name)
		}
	}
}
