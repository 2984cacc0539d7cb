package restore

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func good() *backup.Backup {
	later := now.Add(time.Hour)
	return &backup.Backup{Filename: "20261121_065347.sql.gz", VerifiedAt: &now, RoleManifest: true, ExpiresAt: &later}
}

// with is a good backup with a change.
func with(change func(*backup.Backup)) *backup.Backup {
	b := good()
	change(b)
	return b
}

func TestWhatCanBeRestored(t *testing.T) {
	earlier := now
	const managed, conflict, legacy = fault.ManagedRoleConflict, fault.DatabaseStateConflict, fault.LegacyRoleConflict
	for name, c := range map[string]struct {
		change         func(*Scene)
		of             *backup.Backup
		managed, plain fault.Code // of the two routes' refusals; empty: admitted
	}{
		"active":         {of: good()},
		"stopped":        {change: func(s *Scene) { s.Database.Status = database.Stopped }, of: good()},
		"creating":       {func(s *Scene) { s.Database.Status = database.Creating }, good(), managed, conflict},
		"deleting":       {func(s *Scene) { s.Database.Status = database.Deleting }, good(), managed, conflict},
		"error":          {func(s *Scene) { s.Database.Status = database.Error }, good(), managed, conflict},
		"an operation":   {func(s *Scene) { s.Open = "o" }, good(), managed, conflict},
		"a login change": {func(s *Scene) { s.Change = "c" }, good(), managed, legacy},
		"a new role":     {func(s *Scene) { s.Making = "r" }, good(), managed, legacy},
		"no backup":      {nil, nil, managed, fault.BackupNotFound},
		"not verified":   {nil, with(func(b *backup.Backup) { b.VerifiedAt = nil }), managed, fault.BackupNotVerified},
		"no manifest":    {nil, with(func(b *backup.Backup) { b.RoleManifest = false }), managed, ""},
		"past retention": {nil, with(func(b *backup.Backup) { b.ExpiresAt = &earlier }), managed, fault.BackupNotFound},
		"without end":    {nil, with(func(b *backup.Backup) { b.ExpiresAt = nil }), "", ""},
	} {
		s := Scene{Database: database.Record{Status: database.Active}}
		if c.change != nil {
			c.change(&s)
		}
		s.Database.RoleModel = database.Managed
		want(t, name+", managed", s.AdmitsManaged(c.of, now), c.managed)
		then := c.managed
		if c.change == nil {
			then = "" // the backup says nothing about it
		}
		want(t, name+", managed, as of a moment", s.AdmitsManagedThen(), then)
		byPlain := managed
		if c.plain == fault.BackupNotFound {
			byPlain = c.plain
		}
		want(t, name+", managed by an upload", s.AdmitsUpload(), managed)
		want(t, name+", managed by the plain route", s.AdmitsPlain(c.of, now), byPlain)
		s.Database.RoleModel = database.SingleLogin
		want(t, name+", plain", s.AdmitsPlain(c.of, now), c.plain)
		byUpload := c.plain
		if byUpload != conflict && byUpload != legacy {
			byUpload = "" // the backup says nothing about it
		}
		want(t, name+", by an upload", s.AdmitsUpload(), byUpload)
		want(t, name+", plain by the managed route", s.AdmitsManaged(c.of, now), managed)
		want(t, name+", plain as of a moment", s.AdmitsManagedThen(), managed)
	}
}

func want(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && !fault.Has(err, code) {
		t.Errorf("%s: %v, want %q", what, err, code)
	}
}

func TestRequests(t *testing.T) {
	r := Request{DatabaseID: "d", Filename: "20261121_065347.sql.gz", Key: "k"}
	want(t, "a good one", r.Check(), "")
	for _, c := range []struct {
		filename backup.Filename
		at       *time.Time
		key      idempotency.Key
		code     fault.Code
		field    string
	}{
		{"", &now, "k", "", ""},
		{"", nil, "k", fault.ValidationError, "backupFilename"},
		{"latest", nil, "k", fault.InvalidBackupFilename, ""},
		{r.Filename, &now, "k", fault.ValidationError, "pointInTime"},
		{r.Filename, nil, "", fault.ValidationError, idempotency.Header},
		{"", &now, "", fault.ValidationError, idempotency.Header},
		{r.Filename, nil, idempotency.Key(strings.Repeat("k", 201)), fault.ValidationError, idempotency.Header},
	} {
		err := Request{DatabaseID: "d", Filename: c.filename, At: c.at, Key: c.key}.Check()
		want(t, string(c.filename), err, c.code)
		if c.field != "" && err.(*fault.Error).Details[0].Field != c.field {
			t.Errorf("%v, want %s named", err, c.field)
		}
	}
	known := idempotency.Record{Fingerprint: r.Fingerprint()}
	want(t, "the same", r.AdmitsReplay(known), "")
	for _, other := range []Request{
		{DatabaseID: "e", Filename: r.Filename}, {DatabaseID: "d", Filename: "20261121_065348.sql.gz"},
		{DatabaseID: "d", Filename: r.Filename, Consents: Consents{ConfirmShrink: true}}, {DatabaseID: "d", At: &now},
	} {
		want(t, "another", other.AdmitsReplay(known), fault.ManagedRoleConflict)
	}
}
