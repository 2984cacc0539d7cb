package clone

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/querytimeout"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestWhatCanBeCloned(t *testing.T) {
	const conflict = fault.DatabaseStateConflict
	later := now.Add(time.Hour)
	good := backup.Backup{Filename: "20261121_065347.sql.gz", VerifiedAt: &now, ExpiresAt: &later}
	for name, c := range map[string]struct {
		change func(*Scene, *backup.Backup)
		fresh  fault.Code // of the refusal of a clone of now, or of a moment; empty: admitted
		from   fault.Code // likewise from the backup
	}{
		"active":           {},
		"stopped":          {change: func(s *Scene, _ *backup.Backup) { s.Source.Status = database.Stopped }},
		"creating":         {func(s *Scene, _ *backup.Backup) { s.Source.Status = database.Creating }, conflict, conflict},
		"deleting":         {func(s *Scene, _ *backup.Backup) { s.Source.Status = database.Deleting }, conflict, conflict},
		"error":            {func(s *Scene, _ *backup.Backup) { s.Source.Status = database.Error }, conflict, conflict},
		"an operation":     {func(s *Scene, _ *backup.Backup) { s.Open = "o" }, conflict, conflict},
		"standard":         {change: func(s *Scene, _ *backup.Backup) { s.Source.TimeoutProfile = querytimeout.Standard }},
		"balanced":         {profile(querytimeout.Balanced), reconfigure, reconfigure},
		"short":            {profile(querytimeout.Short), reconfigure, reconfigure},
		"not verified":     {func(_ *Scene, b *backup.Backup) { b.VerifiedAt = nil }, "", fault.BackupNotVerified},
		"past retention":   {func(_ *Scene, b *backup.Backup) { b.ExpiresAt = &now }, "", fault.BackupNotFound},
		"without end":      {change: func(_ *Scene, b *backup.Backup) { b.ExpiresAt = nil }},
		"before the roles": {change: func(_ *Scene, b *backup.Backup) { b.RoleManifest = false }},
	} {
		s, b := Scene{Source: database.Record{Status: database.Active, Settings: database.NoSettings()}}, good
		if c.change != nil {
			c.change(&s, &b)
		}
		want(t, name+", as it is now", s.Admits(), c.fresh)
		want(t, name+", as it was", s.AdmitsThen(), c.fresh)
		want(t, name+", from a backup", s.AdmitsFrom(&b, now), c.from)
		want(t, name+", from none", s.AdmitsFrom(nil, now), fault.BackupNotFound)
	}
}

func TestADeletedDatabaseIsClonedAsItWas(t *testing.T) {
	s := Scene{Source: database.Record{Status: database.Deleted, Settings: database.NoSettings()}}
	want(t, "deleted, as it is now", s.Admits(), fault.DatabaseStateConflict)
	want(t, "deleted, as it was", s.AdmitsThen(), "")
	s.Open = "o"
	want(t, "being recovered", s.AdmitsThen(), fault.DatabaseStateConflict)
	s = Scene{Source: database.Record{Status: database.Purging, Settings: database.NoSettings()}}
	want(t, "being purged", s.AdmitsThen(), fault.DatabaseStateConflict)
	s.Source.Status, s.Source.TimeoutProfile = database.Deleted, querytimeout.Short
	want(t, "with a profile", s.AdmitsThen(), reconfigure)
}

const reconfigure = fault.QueryTimeoutCloneRequiresReconfigure

func profile(p querytimeout.Profile) func(*Scene, *backup.Backup) {
	return func(s *Scene, _ *backup.Backup) { s.Source.TimeoutProfile = p }
}

func want(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && !fault.Has(err, code) {
		t.Errorf("%s: %v, want %q", what, err, code)
	}
}

func TestRequests(t *testing.T) {
	good := Request{Name: "copy", DisplayName: " A copy ", Filename: new(backup.Filename("20261121_065347.sql.gz")), Key: "k"}
	if got, err := good.Check(); err != nil || got.DisplayName != "A copy" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (Request{Name: "copy", DisplayName: "A copy"}).Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*Request)
		code   fault.Code
		field  string
	}{
		{func(r *Request) { r.Name = "C" }, fault.ValidationError, "name"},
		{func(r *Request) { r.Name = "postgres" }, fault.ValidationError, "name"},
		{func(r *Request) { r.Name = "preview-" + strings.Repeat("a", 40) }, fault.ValidationError, "name"},
		{func(r *Request) { r.DisplayName = " " }, fault.ValidationError, "displayName"},
		{func(r *Request) { r.Filename = new(backup.Filename("../x")) }, fault.InvalidBackupFilename, ""},
		{func(r *Request) { r.At = &now }, fault.ValidationError, "pointInTime"},
		{func(r *Request) { r.Key = idempotency.Key(strings.Repeat("k", 201)) }, fault.ValidationError, idempotency.Header},
	} {
		bad := good
		c.change(&bad)
		_, err := bad.Check()
		var known *fault.Error
		if !errors.As(err, &known) || known.Code != c.code || c.field != "" && known.Details[0].Field != c.field {
			t.Errorf("%+v: %v, want %s of %s", bad, err, c.code, c.field)
		}
	}
	prints := map[idempotency.Fingerprint]bool{good.Fingerprint("b"): true}
	for _, change := range []func(*Request){
		func(*Request) {}, func(r *Request) { r.Name = "other" }, func(r *Request) { r.DisplayName = "o" },
		func(r *Request) { r.Filename = nil }, func(r *Request) { r.Filename, r.At = nil, &now },
		func(r *Request) { r.Filename, r.At = nil, new(now.Add(time.Microsecond)) },
	} {
		other := good
		change(&other)
		prints[other.Fingerprint("a")] = true
	}
	if len(prints) != 7 {
		t.Errorf("%d fingerprints of 7 requests", len(prints))
	}
	zone := time.FixedZone("", 3600)
	if (Request{At: &now}).Fingerprint("a") != (Request{At: new(now.In(zone))}).Fingerprint("a") {
		t.Error("one moment has two fingerprints")
	}
}

// Groups are given to the clones of managed databases only: that of a database with a single login has not opted in.
func TestNames(t *testing.T) {
	record := func(n, name string, m database.RoleModel) database.Record {
		return database.Record{ID: "11111111-1111-4111-8111-11111111111" + id.DatabaseID(n), Name: name, RoleModel: m}
	}
	base := func(n, part string) string { return "pgh_1111111111114111811111111111111" + n + part }
	single := []command.Renaming{{From: base("1", "_holder"), To: base("2", "_holder")}, {From: "shop", To: "copy"}}
	overlaid := record("1", "shop", database.SingleLogin)
	overlaid.OverlayStatus = database.OverlayActive
	got := Names(overlaid, record("2", "copy", database.SingleLogin))
	if diff := cmp.Diff(single, got); diff != "" {
		t.Error(diff)
	}
	managed := single
	for _, part := range []string{"_rt", "_ro", "_gro", "_grw"} {
		managed = append(managed, command.Renaming{From: base("1", part), To: base("2", part)})
	}
	got = Names(record("1", "shop", database.Managed), record("2", "copy", database.Managed))
	if diff := cmp.Diff(managed, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheSizeOfAClone(t *testing.T) {
	bytes := int64(1000)
	clone := database.Record{Plan: account.Pro, DatabaseBytes: &bytes}
	if err := TooLarge(1000, clone); err != nil {
		t.Error(err)
	}
	want(t, "larger", TooLarge(1001, clone), fault.PlanLimit)
}
