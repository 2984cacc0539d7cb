package adoption_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
)

const shop id.DatabaseID = "0189abcd-ef01-4234-8567-89abcdef0123"

// standing is a database as its agent has it, of a role model.
func standing(model database.RoleModel) command.InventoryDatabase {
	n := database.RoleNames(shop, "shop")
	has := command.InventoryDatabase{
		DatabaseID: shop, Name: "shop", RoleModel: model, ConnectionCap: 60, Made: true, Open: true,
		Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Actual:   &command.ActualDatabase{Name: "shop", Owner: n.Holder, AllowConnections: true},
		Roles:    []command.InventoryRole{{Name: n.Holder, Part: command.PartHolder}},
	}
	for _, l := range model.Logins() {
		has.Roles = append(has.Roles, command.InventoryRole{Name: n.Of(l), Part: string(l), Enabled: true, CredentialGeneration: 3})
	}
	return has
}

// additional is a role as the agent has it, in a group.
func additional(name, group string, enabled bool) command.InventoryRole {
	r := command.InventoryRole{
		Name: name, Part: command.PartAdditional, Limit: 4, Enabled: enabled, CredentialGeneration: 2, Actual: &command.ActualRole{},
	}
	if group != "" {
		r.Actual.MemberOf = []command.Membership{{Role: group, Inherit: true}}
	}
	return r
}

func TestLook(t *testing.T) {
	out := func(has *command.InventoryDatabase) {
		has.Isolated, has.Actual.Name, has.Open = "deleted_x", "deleted_x", false
	}
	for name, c := range map[string]struct {
		change func(*command.InventoryDatabase)
		want   adoption.Wanted
		fate   adoption.Fate // empty: it is refused
		open   bool
	}{
		"in service": {func(*command.InventoryDatabase) {}, adoption.Wanted{}, adoption.Serves, true},
		"stopped": {
			func(has *command.InventoryDatabase) { has.Open = false }, adoption.Wanted{}, adoption.Serves, false,
		},
		"to be dropped":          {func(*command.InventoryDatabase) {}, adoption.Wanted{Drop: true}, adoption.Dropped, true},
		"without a backup":       {func(*command.InventoryDatabase) {}, adoption.Wanted{Drop: true, Bare: true}, adoption.Bare, true},
		"out of service":         {out, adoption.Wanted{}, adoption.Deleted, false},
		"out, and to be dropped": {out, adoption.Wanted{Drop: true}, adoption.Deleted, false},
		"never completed": {
			func(has *command.InventoryDatabase) { has.Made, has.Actual = false, nil }, adoption.Wanted{}, "", false,
		},
		"lost by PostgreSQL": {func(has *command.InventoryDatabase) { has.Actual = nil }, adoption.Wanted{}, "", false},
		"lost, and to be dropped": {
			func(has *command.InventoryDatabase) { has.Actual = nil }, adoption.Wanted{Drop: true}, adoption.Lost, false,
		},
		"somebody else's": {func(has *command.InventoryDatabase) { has.Actual.Owner = "them" }, adoption.Wanted{}, "", false},
		"somebody else's, to be dropped": {
			func(has *command.InventoryDatabase) { has.Actual.Owner = "them" }, adoption.Wanted{Drop: true, Bare: true}, "", false,
		},
		"under another name": {func(has *command.InventoryDatabase) { has.Actual.Name = "other" }, adoption.Wanted{}, "", false},
	} {
		has := standing(database.Managed)
		c.change(&has)
		f, err := adoption.Look(has, c.want)
		if c.fate == "" {
			if !fault.Has(err, fault.DatabaseStateConflict) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || f.Fate != c.fate || f.Open != c.open {
			t.Errorf("%s: %s, open is %t, %v", name, f.Fate, f.Open, err)
		}
	}
}

// Whatever an agent has of a database, with the record that is made of it there is no difference but the key and the account,
// which are not told by this, and passwords.
func TestTheRecordIsAsTheServerHasIt(t *testing.T) {
	n := database.RoleNames(shop, "shop")
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.SampledFrom(database.Managed.Values()).Draw(t, "model")
		has := standing(model)
		has.Open = rapid.Bool().Draw(t, "open")
		if has.ReadOnly = rapid.Bool().Draw(t, "read-only"); has.ReadOnly {
			has.Closed = rapid.Bool().Draw(t, "closed")
		}
		if p := rapid.SampledFrom(querytimeout.NotConfigured.Values()).Draw(t, "profile"); p != querytimeout.NotConfigured {
			l := querytimeout.Policy[p]
			has.Timeouts = &command.Timeouts{
				StatementMs: l.Statement.Milliseconds(), LockMs: l.Lock.Milliseconds(),
				IdleInTransactionMs: l.IdleInTransaction.Milliseconds(),
			}
		}
		groups := model == database.Managed || rapid.Bool().Draw(t, "opted in")
		if groups {
			has.Roles = append(has.Roles, command.InventoryRole{Name: n.ReadGroup, Part: command.PartReadGroup},
				command.InventoryRole{Name: n.WriteGroup, Part: command.PartWriteGroup})
			for ordinal := range rapid.IntRange(0, 3).Draw(t, "roles") {
				group := rapid.SampledFrom([]string{"", n.ReadGroup, n.WriteGroup}).Draw(t, "group")
				name := role.ModelOf(model).Username(shop, ordinal+1)
				has.Roles = append(has.Roles, additional(name, group, rapid.Bool().Draw(t, "enabled")))
			}
		}
		f, err := adoption.Look(has, adoption.Wanted{})
		if err != nil {
			t.Fatal(err)
		}
		want := &doctor.Database{Record: f.Record, Roles: f.Roles, Networks: f.Networks}
		want.Status = map[bool]database.Status{true: database.Active, false: database.Stopped}[f.Open]
		want.Wanted = command.Configure{Timeouts: has.Timeouts, ReadOnly: has.ReadOnly, Closed: has.Closed}
		for _, d := range doctor.ExamineDatabase(want, &has) {
			switch d.Code {
			case doctor.RoleUnknown, doctor.RoleMissing, doctor.DatabaseRenamed, doctor.AllowlistDiffers, doctor.SettingsDiffer,
				doctor.CapDiffers, doctor.RoleModelDiffers, doctor.AccessDiffers, doctor.LoginEnabled, doctor.RoleLimit:
				t.Errorf("%s: %s", d.Code, d)
			}
		}
		for _, l := range model.Logins() {
			if f.Credentials[l] != 3 {
				t.Errorf("the password of %s has the generation %d", l, f.Credentials[l])
			}
		}
	})
}

// What cannot come back is said, and so is how to go on.
func TestWhatDoesNotComeBackIsSaid(t *testing.T) {
	has := standing(database.Managed)
	has.Timeouts = &command.Timeouts{StatementMs: 1}
	has.Roles = append(has.Roles, additional("somebody", "", true))
	f, err := adoption.Look(has, adoption.Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(f.Notes, "\n")
	for _, part := range []string{"display name", "rotate", "backup adopt", "query timeouts", "the role somebody"} {
		if !strings.Contains(said, part) {
			t.Errorf("nothing is said of %q:\n%s", part, said)
		}
	}
	if len(f.Roles) > 0 {
		t.Errorf("the roles are %+v", f.Roles)
	}
}

func TestPick(t *testing.T) {
	all := []command.InventoryDatabase{standing(database.Managed)}
	for _, text := range []string{"shop", string(shop)} {
		if got, err := adoption.Pick(all, text); err != nil || got.DatabaseID != shop {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := adoption.Pick(all, "other"); !fault.Has(err, fault.ValidationError) {
		t.Error(err)
	}
}

// The retention of an adopted backup begins when it is adopted.
func TestFile(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now, verified := made.AddDate(1, 0, 0), made.Add(time.Hour)
	name := backup.FilenameAt(made)
	m := backup.StoredManifest{SHA256: "sum", Manifest: backup.Manifest{
		FormatVersion: 4, DatabaseID: shop, OperationID: "op", Filename: name, CreatedAt: made,
		File: backup.FileDigest{SizeBytes: 7, SHA256: "data"}, Logins: []backup.Login{{Name: "shop"}},
	}}
	b, err := adoption.File(shop, name, m, &verified, now, 7)
	if err != nil || b.ExpiresAt == nil || !b.ExpiresAt.Equal(now.AddDate(0, 0, 7)) || b.Expired(now) || b.Bound() {
		t.Errorf("%+v, %v", b, err)
	}
	if b.SizeBytes != 7 || b.ChecksumSHA256 != "data" || b.ManifestSHA256 != "sum" || !b.RoleManifest || b.VerifiedAt != &verified {
		t.Errorf("%+v", b)
	}
	for _, other := range []func(*backup.StoredManifest){
		func(m *backup.StoredManifest) { m.DatabaseID = "another" },
		func(m *backup.StoredManifest) { m.Filename = backup.FilenameAt(now) },
	} {
		wrong := m
		other(&wrong)
		if _, err := adoption.File(shop, name, wrong, nil, now, 7); !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("%v", err)
		}
	}
}
