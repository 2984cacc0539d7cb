package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

const (
	patient = id.DatabaseID("00000000-0000-4000-8000-000000000001")
	doneOp  = id.OperationID("00000000-0000-4000-8000-0000000000d0")
	openOp  = id.OperationID("00000000-0000-4000-8000-0000000000e0")
	noOp    = id.OperationID("00000000-0000-4000-8000-0000000000f0")
)

var (
	names   = database.RoleNames(patient, "shop")
	network = netip.MustParsePrefix("192.0.2.0/24")
	until   = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	limits  = &command.Timeouts{StatementMs: 1, LockMs: 2, IdleInTransactionMs: 3}
)

// healthy is a database of which both sides say the same: its logins, a role of each status, settings and networks.
func healthy() (want *Database, has *command.InventoryDatabase) {
	role := func(ordinal int, s role.Status, p role.AccessProfile, expires *time.Time) role.Role {
		return role.Role{
			Ordinal: ordinal, Username: role.ManagedRoles.Username(patient, ordinal), AccessProfile: p, ConnectionLimit: 4, Status: s,
			Verifier: "verifier of a role", CredentialGeneration: 1, CredentialExpiresAt: expires,
		}
	}
	want = &Database{
		Record: database.Record{
			ID: patient, AccountID: "owner", Name: "shop", RoleModel: database.Managed, ConnectionCap: 20, Status: database.Active,
		},
		Logins: []Login{
			{database.OwnerLogin, names.Owner, "verifier of the owner", 1}, {database.RuntimeLogin, names.Runtime, "verifier rt", 1},
			{database.ReadonlyLogin, names.Readonly, "verifier ro", 3},
		},
		Roles:    statuses(role),
		Networks: []netip.Prefix{network}, BackupKey: []byte("key"), Wanted: command.Configure{Timeouts: limits, ReadOnly: true},
	}
	has = &command.InventoryDatabase{
		DatabaseID: patient, Name: "shop", RoleModel: database.Managed, ConnectionCap: 20, AccountID: "owner", Made: true, Open: true,
		BackupKeyMark: markOf("key"),
		Networks:      []netip.Prefix{network}, Timeouts: limits, ReadOnly: true,
		Actual: &command.ActualDatabase{
			Name: "shop", Owner: names.Holder, ConnectionLimit: 25, AllowConnections: true,
			LoginRights: []string{"connect", "create", "temporary"},
			Settings: map[string]string{
				"statement_timeout": "1", "lock_timeout": "2", "idle_in_transaction_session_timeout": "3",
				"default_transaction_read_only": "on",
			},
		},
		Roles: actualRoles(),
	}
	return want, has
}

func statuses(of func(int, role.Status, role.AccessProfile, *time.Time) role.Role) []role.Role {
	return []role.Role{
		of(1, role.Ready, role.ReadWrite, &until), of(2, role.Revoked, role.ReadOnly, nil), of(3, role.Reserved, role.Custom, nil),
		of(4, role.SQLReady, role.ReadOnly, nil), of(5, role.Expired, role.Custom, &until),
	}
}

func actualRoles() []command.InventoryRole {
	group := func(name, part string, members ...string) command.InventoryRole {
		return command.InventoryRole{
			Name: name, Part: part, Enabled: true, Actual: &command.ActualRole{ConnectionLimit: -1, Members: members},
		}
	}
	login := func(name, part, verifier, in string) command.InventoryRole {
		s := &command.ActualRole{MayLogIn: true, ConnectionLimit: -1, VerifierMark: markOf(verifier)}
		if in != "" {
			s.MemberOf = []command.Membership{{Role: in, Inherit: true}}
		}
		return command.InventoryRole{Name: name, Part: part, Enabled: true, Gate: command.GateOpen, Actual: s}
	}
	additional := func(ordinal int, in string) command.InventoryRole {
		r := login(role.ManagedRoles.Username(patient, ordinal), command.PartAdditional, "verifier of a role", in)
		r.Limit, r.Actual.ConnectionLimit = 4, 9
		return r
	}
	shut := func(r command.InventoryRole) command.InventoryRole {
		r.Enabled, r.Gate, r.Actual.MayLogIn, r.Actual.VerifierMark = false, command.GateClosed, false, ""
		return r
	}
	ready, revoked := additional(1, names.WriteGroup), shut(additional(2, names.ReadGroup))
	ready.Actual.ValidUntil = &until
	readonly := login(names.Readonly, command.PartReadonly, "verifier ro", names.ReadGroup)
	readonly.CredentialGeneration = 3
	revoked.Actual.Members = []string{names.Owner} // who is to drop what it has
	owner := login(names.Owner, command.PartOwner, "verifier of the owner", revoked.Name)
	return []command.InventoryRole{
		group(names.Holder, command.PartHolder), group(names.ReadGroup, command.PartReadGroup, names.Readonly, revoked.Name),
		group(names.WriteGroup, command.PartWriteGroup, names.Runtime, ready.Name, "dump_00000000000000000000000000000000"),
		owner,
		login(names.Runtime, command.PartRuntime, "verifier rt", names.WriteGroup),
		readonly, ready, revoked, shut(additional(4, "")), shut(additional(5, "")),
	}
}

// overlaid makes it a database with a single login, whose overlay has a status and, on the server, these groups.
func overlaid(w *Database, h *command.InventoryDatabase, s database.OverlayStatus, groups ...string) {
	w.RoleModel, h.RoleModel, w.OverlayStatus = database.SingleLogin, database.SingleLogin, s
	h.Roles = slices.DeleteFunc(h.Roles, func(r command.InventoryRole) bool {
		r.Actual.Members = slices.DeleteFunc(r.Actual.Members, func(name string) bool {
			return name == names.Runtime || name == names.Readonly
		})
		return r.Name == names.Runtime || r.Name == names.Readonly ||
			strings.HasSuffix(r.Part, "_group") && !slices.Contains(groups, r.Name)
	})
}

// unused leaves no additional roles.
func unused(w *Database, h *command.InventoryDatabase) {
	w.Roles = nil
	h.Roles = slices.DeleteFunc(h.Roles, func(r command.InventoryRole) bool {
		r.Actual.Members = nil
		if r.Part == command.PartOwner {
			r.Actual.MemberOf = nil
		}
		return r.Part == command.PartAdditional
	})
}

// isolate is what a deletion leaves.
func isolate(w *Database, h *command.InventoryDatabase) {
	w.Status, h.Open, h.Isolated = database.Deleted, false, "deleted_1"
	h.Actual.Name, h.Actual.AllowConnections = "deleted_1", false
	for i := range h.Roles {
		h.Roles[i].Actual.MayLogIn = false
		if h.Roles[i].Gate != "" {
			h.Roles[i].Gate = command.GateClosed
		}
	}
}

// change is damage to one side; find is a role of the agent's by its name.
type change func(want *Database, has *command.InventoryDatabase, find func(name string) *command.InventoryRole)

var ready = role.ManagedRoles.Username(patient, 1)

// damages of a database, and what is found of each: exactly that.
var damages = []struct {
	what  string
	do    change
	codes []Code
}{
	{"nothing", func(*Database, *command.InventoryDatabase, func(string) *command.InventoryRole) {}, nil},
	{"a passing status", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Status = database.Deleting
	}, []Code{StatusStuck}},
	{"a purge that is refused", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Status, w.Busy, w.Refused = database.Purging, true, "it is in service"
	}, []Code{PurgeRefused}},
	{"never made", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Made = false
	}, []Code{DatabaseMissing}},
	{"gone from PostgreSQL", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual = nil
	}, []Code{DatabaseGone}},
	{"renamed in PostgreSQL", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.Name = "other"
	}, []Code{DatabaseRenamed}},
	{"another owner", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.Owner = "shop"
	}, []Code{DatabaseOwner}},
	{"another cap", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.ConnectionCap = 30
	}, []Code{CapDiffers}},
	{"another limit", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.ConnectionLimit = -1
	}, []Code{LimitDiffers}},
	{"no connections", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.AllowConnections = false
	}, []Code{ConnectionsDiffer}},
	{"rights of everybody", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.PublicRights = []string{"connect", "temporary"}
	}, []Code{PublicRights}},
	{"rights of the owner", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Actual.LoginRights = []string{"connect"}
	}, []Code{OwnerRights}},
	{"another backup key", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.BackupKeyMark = markOf("another")
	}, []Code{BackupKeyDiffers}},
	{"a backup key that nobody can open", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.BackupKey = nil
	}, []Code{BackupKeyDiffers}},
	{"another account", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.AccountID = "other"
	}, []Code{AccountDiffers}},
	{"no account yet", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.AccountID = ""
	}, nil},
	{"no networks", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Networks = nil
	}, []Code{AllowlistDiffers}},
	{"other settings", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Wanted.ReadOnly = false
	}, []Code{SettingsDiffer}},
	{"a setting that is lost", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		delete(h.Actual.Settings, "lock_timeout")
	}, []Code{SettingDiffers}},
	{"a setting of an administrator's", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Wanted.Timeouts, h.Timeouts = nil, nil
	}, nil},
	{"another role model", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.RoleModel = database.SingleLogin
	}, []Code{RoleModelDiffers}},
	{"an overlay", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		overlaid(w, h, database.OverlayActive, names.ReadGroup, names.WriteGroup)
	}, nil},
	{"an overlay out of service", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		overlaid(w, h, database.OverlayActive, names.ReadGroup, names.WriteGroup)
		isolate(w, h)
	}, nil},
	{"an overlay without a group", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		overlaid(w, h, database.OverlayActive, names.ReadGroup)
	}, []Code{RoleMissing}},
	{"an overlay whose login is in no group", func(
		w *Database, h *command.InventoryDatabase, find func(string) *command.InventoryRole,
	) {
		overlaid(w, h, database.OverlayActive, names.ReadGroup, names.WriteGroup)
		find(ready).Actual.MemberOf = nil
	}, []Code{MembershipMissing}},
	{"an unfinished opt-in", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		overlaid(w, h, database.OverlayReserved)
		unused(w, h)
	}, []Code{OverlayReserved}},
	{"an opt-in that nobody knows to be finished", func(
		w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole,
	) {
		overlaid(w, h, database.OverlayReserved, names.ReadGroup, names.WriteGroup)
		unused(w, h)
	}, []Code{OverlayReserved}},
	{"an unfinished opt-in of what is deleted", func(
		w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole,
	) {
		overlaid(w, h, database.OverlayReserved, names.ReadGroup, names.WriteGroup)
		unused(w, h)
		isolate(w, h)
	}, nil},
	{"groups of no overlay", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		overlaid(w, h, database.NoOverlay, names.ReadGroup, names.WriteGroup)
		unused(w, h)
	}, []Code{RoleUnknown}},
	{"a role that is no more", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Roles = slices.DeleteFunc(h.Roles, func(r command.InventoryRole) bool { return r.Name == ready })
	}, []Code{RoleMissing}},
	{"a role too many", func(_ *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		h.Roles = append(h.Roles, command.InventoryRole{Name: "somebody", Part: command.PartAdditional})
	}, []Code{RoleUnknown}},
	{"a role gone from PostgreSQL", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Holder).Actual = nil
	}, []Code{RoleGone}},
	{"powers", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(role.ManagedRoles.Username(patient, 4)).Actual.Powers = []string{"superuser"}
	}, []Code{RolePowers}},
	{"a limit in the pooler", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(ready).Limit = 5
	}, []Code{RoleLimit}},
	{"a limit in PostgreSQL", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Owner).Actual.ConnectionLimit = 1
	}, []Code{LoginLimit}},
	{"a revoked role that is let in", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		r := find(role.ManagedRoles.Username(patient, 2))
		r.Enabled, r.Gate, r.Actual.MayLogIn = true, command.GateOpen, true
	}, []Code{LoginEnabled, GateDiffers, LoginDiffers}},
	{"a holder that may log in", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Holder).Actual.MayLogIn = true
	}, []Code{LoginDiffers}},
	{"no gate", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Runtime).Gate = ""
	}, []Code{GateDiffers}},
	{"a stopped database", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Status, h.Open = database.Stopped, false
		for i := range h.Roles {
			h.Roles[i].Actual.MayLogIn = false
			if h.Roles[i].Gate != "" {
				h.Roles[i].Gate = command.GateClosed
			}
		}
	}, nil},
	{"a stopped database that is open", func(w *Database, _ *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Status = database.Stopped
	}, []Code{AccessDiffers, GateDiffers, LoginDiffers}},
	{"a deleted database", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Networks = nil // a change that was not sent yet
		isolate(w, h)
	}, nil},
	{"a deleted database that is open", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		isolate(w, h)
		h.Actual.AllowConnections = true
	}, []Code{ConnectionsDiffer}},
	{"a database out of service", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		isolate(w, h)
		w.Status = database.Stopped
	}, []Code{ServiceDiffers}},
	{"a deleted one that was never whole", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Status, w.MayLack, h.Made = database.Deleted, true, false
	}, nil},
	{"a database closed for its size", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Wanted.Closed, h.Closed = true, true
		for i := range h.Roles {
			h.Roles[i].Actual.MayLogIn = false // the gates stay open
		}
	}, nil},
	{"a password", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Readonly).Actual.VerifierMark = markOf("of the customer's own")
	}, []Code{PasswordDiffers}},
	{"a password of before", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Readonly).CredentialGeneration = 2
	}, []Code{CredentialDiffers}},
	{"a validity", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(ready).Actual.ValidUntil = nil
	}, []Code{ValidityDiffers}},
	{"no membership", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(ready).Actual.MemberOf = nil
	}, []Code{MembershipMissing}},
	{"a revoked role that was made anew where its database has moved to", func(
		_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole,
	) {
		find(role.ManagedRoles.Username(patient, 2)).Actual.MemberOf = nil
	}, nil},
	{"more of a membership", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(ready).Actual.MemberOf[0].Set = true
	}, []Code{MembershipUnexpected}},
	{"another membership", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Owner).Actual.MemberOf = []command.Membership{{Role: "pg_read_all_data", Inherit: true}}
	}, []Code{MembershipUnexpected}},
	{"more of a dead role", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Owner).Actual.MemberOf[0].Set = true
	}, []Code{MembershipUnexpected}},
	{"the rights of a role that logs in", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Owner).Actual.MemberOf[0].Role = ready
	}, []Code{MembershipUnexpected}},
	{"a member", func(_ *Database, _ *command.InventoryDatabase, find func(string) *command.InventoryRole) {
		find(names.Holder).Actual.Members = []string{"somebody"}
	}, []Code{MemberUnexpected}},
	{"work under way", func(w *Database, h *command.InventoryDatabase, _ func(string) *command.InventoryRole) {
		w.Busy, h.Actual = true, nil
	}, nil},
}

func TestExamineDatabase(t *testing.T) {
	for _, d := range damages {
		t.Run(d.what, func(t *testing.T) {
			want, has := healthy()
			d.do(want, has, func(name string) *command.InventoryRole {
				return &has.Roles[slices.IndexFunc(has.Roles, func(r command.InventoryRole) bool { return r.Name == name })]
			})
			wantCodes(t, ExamineDatabase(want, has), d.codes...)
		})
	}
	want, has := healthy()
	wantCodes(t, ExamineDatabase(nil, has), DatabaseUnknown)
	wantCodes(t, ExamineDatabase(want, nil), DatabaseMissing)
}

// One that should be in service is put back there; of one that is deleted and in service, an operator decides.
func TestWhatIsPutBackIntoService(t *testing.T) {
	for status, repair := range map[database.Status]Repair{
		database.Active: Rejoin, database.Stopped: Rejoin, database.Error: Rejoin, database.Deleted: Nothing,
	} {
		want, has := healthy()
		if isolate(want, has); status == database.Deleted {
			_, has = healthy()
		}
		want.Status = status
		found := ExamineDatabase(want, has)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Code == ServiceDiffers })
		if i < 0 || found[i].Repair() != repair {
			t.Errorf("%s: found %v", status, found)
		}
	}
}

// wantCodes compares the findings' codes, each of which must be known and name what it is about.
func wantCodes(t *testing.T, found []Finding, want ...Code) {
	t.Helper()
	var codes []Code
	for _, f := range found {
		if f.Kind().Says == "" || f.Code != ListCut && f.Subject == "" {
			t.Errorf("a finding that says nothing: %+v", f)
		}
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(codes, want) {
		t.Errorf("found %v, want %v: %v", codes, want, found)
	}
}

// What the metadata or a look cannot show, the use cases find; every other kind has its case here.
func TestEveryKindHasItsCase(t *testing.T) {
	seen := map[Code]bool{
		DatabaseUnknown: true, DatabaseElsewhere: true, ServerUnreachable: true, ServerRefuses: true, OtherProtocol: true,
		FileDamaged: true, StorageAway: true,
		SnapshotOld:    true,                                           // in snapshot_test.go
		ForwardUnknown: true, ForwardMissing: true, ForwardFails: true, // in forwards_test.go
	}
	for _, a := range archives {
		for _, c := range a.codes {
			seen[c] = true
		}
	}
	for _, codes := range drilled {
		for _, c := range codes {
			seen[c] = true
		}
	}
	for _, d := range damages {
		for _, c := range d.codes {
			seen[c] = true
		}
	}
	for _, c := range slices.Concat(strayCodes(), fileCodes(), rightsCodes()) {
		seen[c] = true
	}
	known := map[Code]bool{}
	for _, k := range Kinds {
		if known[k.Code] || k.Says == "" {
			t.Errorf("%s is there twice, or says nothing", k.Code)
		}
		if known[k.Code] = true; !seen[k.Code] {
			t.Errorf("no case finds %s", k.Code)
		}
		if k.Repair != Nothing && !slices.Contains(Repairs, k.Repair) {
			t.Errorf("%s: nobody knows how to %q", k.Code, k.Repair)
		}
	}
}
