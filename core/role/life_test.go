package role

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// life is one role from its creation on, as the use cases drive it: users ask, the agent answers what is pending, time passes.
// Beside it stands what must be true of it, kept by hand.
type life struct {
	model    Model
	now      time.Time
	blocking operation.Kind
	role     Role
	// pending is the change that waits for the agent; it is the only one that the agent can answer.
	pending *Change

	opened   bool // the agent has opened the log-in
	shut     bool // nobody was to get in any more, once
	removed  bool
	rotated  int64 // passwords that were made after the first
	rotating bool
}

func newLife(m Model) *life {
	end := noon.Add(30 * time.Minute)
	return &life{model: m, now: noon, role: Role{
		ID: someRole, DatabaseID: someDatabase, Ordinal: 1, DisplayName: "Reports", ConnectionLimit: 1, Status: Reserved,
		CredentialGeneration: 1, CredentialExpiresAt: &end, Verifier: "v1", Sealed: []byte("p1"),
	}}
}

func (l *life) scene() Scene {
	s := sceneOf(l.model, l.role)
	s.Change, s.Blocking = l.pending, l.blocking
	return s
}

// answers are what the agent can say of a change of each kind.
var answers = map[Kind][]Event{
	Rotation: {Rotated, Undone}, Revocation: {Shut, Undone}, Expiry: {Shut, Undone}, Removal: {Dropped, Kept, Undone},
}

// wishes begin with what a role must live through to expire: the first are drawn more often.
var wishes = []Event{Prepare, Admit, Expire, Reveal, Rename, Rotate, Revoke, Delete, Remove}

// step draws what happens next: a wish that the rules may refuse, or an answer, and applies it.
func (l *life) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		l.now = l.now.Add(rapid.SampledFrom([]time.Duration{20 * time.Minute, time.Second}).Draw(t, "pause"))
	case 1:
		l.blocking = rapid.SampledFrom([]operation.Kind{"", "", "restore"}).Draw(t, "operation")
	case 2, 3, 4:
		if l.pending != nil {
			l.answered(t, rapid.SampledFrom(answers[l.pending.Kind]).Draw(t, "answer"))
		}
	default:
		l.asked(t, rapid.SampledFrom(wishes).Draw(t, "wish"))
	}
}

func (l *life) asked(t *rapid.T, e Event) {
	cell, err := l.decide(e)
	switch {
	case fault.Has(err, fault.InternalError):
		t.Fatal(err)
	case err != nil:
		return
	case l.pending != nil && len(cell.Effects) > 0:
		t.Fatalf("%s begins while a %s is pending", e, l.pending.Kind)
	case l.blocking != "" && len(cell.Effects) > 0:
		t.Fatalf("%s begins during a restore", e)
	}
	l.role.Status = cell.Next
	for _, effect := range cell.Effects {
		switch effect {
		case OpenLogin:
			l.opened = true
		case StartProof:
			l.begin(map[Event]Kind{Rotate: Rotation, Revoke: Revocation, Delete: Revocation, Expire: Expiry}[e], cell)
		case DropRole:
			l.begin(Removal, cell)
		}
	}
}

func (l *life) decide(e Event) (machine.Cell[Status], error) {
	s, same := l.scene(), machine.To(l.role.Status)
	switch e {
	case Prepare, Admit:
		return s.AdmitsSetup(l.role, e, l.now)
	case Reveal:
		return same, l.role.AdmitsReveal(l.now)
	case Rename:
		return same, s.AdmitsRename(l.role, "Exports")
	case Rotate:
		return s.AdmitsChange(l.role, Rotation, l.now)
	case Revoke:
		return s.AdmitsChange(l.role, Revocation, l.now)
	case Expire:
		cell, ok := s.AdmitsExpiry(l.role, l.now)
		if !ok {
			return cell, conflictf("not yet")
		}
		return cell, nil
	default:
		return s.AdmitsRemoval(l.role, e)
	}
}

func (l *life) begin(k Kind, cell machine.Cell[Status]) {
	l.pending = &Change{ID: someChange, DatabaseID: someDatabase, RoleID: l.role.ID, Kind: k, Status: Pending}
	if k == Rotation {
		l.pending.CredentialGeneration, l.pending.ExpiresAt = l.role.CredentialGeneration+1, l.role.CredentialExpiresAt
		l.pending.Verifier, l.pending.Sealed = "next", []byte("next")
	}
	l.role = l.role.Begun(*l.pending, cell)
	l.rotating, l.shut = k == Rotation, l.shut || k == Expiry
}

func (l *life) answered(t *rapid.T, e Event) {
	after, err := l.role.Concluded(*l.pending, e)
	if err != nil {
		t.Fatalf("the machine has no place for %s after a %s: %v", e, l.pending.Kind, err)
	}
	l.role, l.pending, l.rotating = after, nil, false
	switch e {
	case Rotated:
		l.rotated++
	case Shut, Kept:
		l.shut = true
	case Dropped:
		l.removed = true
	}
}

func (l *life) check(t *rapid.T) {
	r := l.role
	none := r.Status == Revoked || r.Status == Removed
	switch {
	case Transitions[r.Status] == nil:
		t.Fatalf("the role is %q", r.Status)
	case l.removed != (r.Status == Removed):
		t.Fatalf("the role was removed: %v, and is %s", l.removed, r.Status)
	case r.Status == Ready && !l.opened:
		t.Fatal("the role is ready, and its log-in was never opened")
	case r.Status == Ready && l.shut && !r.CredentialExpired(l.now): // a revocation that was declined; it expires again
		t.Fatal("the role was shut, and is ready")
	case none != (r.Sealed == nil) || none != (r.Verifier == ""):
		t.Fatalf("the role is %s; has a password: %v", r.Status, r.Sealed != nil)
	case (r.Status == Updating) != (l.pending != nil && (l.pending.Kind == Rotation || l.pending.Kind == Revocation)):
		t.Fatalf("the role is %s, pending is %+v", r.Status, l.pending)
	case (r.ChangeID == "") != (l.pending == nil):
		t.Fatalf("the role's change is %q, pending is %+v", r.ChangeID, l.pending)
	case r.CredentialGeneration != 1+l.rotated:
		t.Fatalf("credential generation %d after %d rotations", r.CredentialGeneration, l.rotated)
	}
	shown := r.AdmitsReveal(l.now) == nil
	if shown && (r.Status != Ready || !l.now.Before(*r.CredentialExpiresAt) || l.rotating) {
		t.Fatalf("revealed while %s at %s", r.Status, l.now)
	}
}

func TestLifeOfARole(t *testing.T) {
	passed := map[Status]bool{}
	const rounds = 50 // one round of lives misses a status now and then, mostly the expired one
	for round := 0; round < rounds && len(passed) < len(Statuses); round++ {
		rapid.Check(t, func(t *rapid.T) {
			l := newLife(rapid.SampledFrom(models).Draw(t, "model"))
			for range rapid.IntRange(20, 120).Draw(t, "steps") {
				l.step(t)
				l.check(t)
				passed[l.role.Status] = true
			}
		})
	}
	for _, s := range Statuses {
		if !passed[s] {
			t.Errorf("no role was ever %s: the test no longer gets there", s)
		}
	}
}

// calmScene is an active database with managed roles and a cap of 60, on which nothing is open.
func calmScene(roles ...Role) Scene {
	return Scene{
		Database: database.Record{ID: someDatabase, RoleModel: database.Managed, Status: database.Active, ConnectionCap: 60},
		Roles:    roles,
	}
}
