package fakeagent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

var reader = command.AdmitRole{
	DatabaseID: orders().DatabaseID, Username: role.Username(orders().DatabaseID, 1), Generation: 1,
	AccessProfile: role.ReadOnly, ConnectionLimit: 1,
	Password: "first", Verifier: credential.Verifier("first", [16]byte{1}, 1),
}

var prepared = command.PrepareRole{
	DatabaseID: reader.DatabaseID, Username: reader.Username, Generation: 1, AccessProfile: role.ReadOnly, ConnectionLimit: 1,
}

func rotation() command.ChangeLogin {
	return command.ChangeLogin{
		DatabaseID: reader.DatabaseID, Username: reader.Username, Generation: 2, Want: role.Rotation, CredentialGeneration: 2,
		OldPassword: "first", NewPassword: "second", Verifier: credential.Verifier("second", [16]byte{2}, 1),
	}
}

// mustAdmit makes the database and a role in it.
func mustAdmit(t *testing.T, a ports.Agent) {
	t.Helper()
	managed := orders()
	managed.RoleModel = database.Managed
	if err := ports.Tell(t.Context(), a, fence, managed); err != nil {
		t.Fatal(err)
	}
	setUp := ports.Fence{OperationID: "55555555-5555-4555-8555-555555555555"}
	if err := errors.Join(ports.Tell(t.Context(), a, setUp, prepared), ports.Tell(t.Context(), a, setUp, reader)); err != nil {
		t.Fatal(err)
	}
}

func getsIn(s *fakeagent.Server, password string) bool {
	return s.CanLogIn(home, "orders", reader.Username, password)
}

func TestALostReplyToARotationHasItsEffect(t *testing.T) {
	a, s := stand(t)
	mustAdmit(t, a)
	session, err := s.Connect(home, "orders", reader.Username, "first")
	if err != nil {
		t.Fatal(err)
	}
	s.LoseReplies(1)
	if _, err := ports.Do(t.Context(), a, fence2(), rotation()); !errors.Is(err, fakeagent.ErrReplyLost) {
		t.Errorf("got %v", err)
	}
	if getsIn(s, "first") || !getsIn(s, "second") || session.Alive() {
		t.Error("the rotation is not in force")
	}
	proof, err := ports.Do(t.Context(), a, fence2(), rotation())
	want := role.Proof{ClientsClosed: 1, SessionsEnded: 1, NoneLeft: true, OldRefused: true, NewAccepted: true}
	if err != nil || proof != want {
		t.Errorf("again: %+v (%v)", proof, err)
	}
}

func TestRolesOfAServerThatCannotBeReachedStayAsTheyAre(t *testing.T) {
	a, s := stand(t)
	mustAdmit(t, a)
	for name, set := range map[string]struct {
		with func(bool)
		want func(error) bool
	}{
		"unreachable": {s.SetUnreachable, func(err error) bool { return errors.Is(err, ports.ErrAgentUnreachable) }},
		"unavailable": {s.SetUnavailable, func(err error) bool { return command.RefusedFor(err, command.ReasonUnavailable) }},
		"old agent":   {s.SetOldAgent, func(err error) bool { return command.RefusedFor(err, command.ReasonNoRoute) }},
	} {
		set.with(true)
		_, changed := ports.Do(t.Context(), a, fence2(), rotation())
		_, removed := ports.Do(t.Context(), a, fence2(), command.RemoveRole{
			DatabaseID: reader.DatabaseID, Username: reader.Username, Generation: 3,
		})
		_, inspected := ports.Ask(t.Context(), a, command.InspectLogin{
			DatabaseID: reader.DatabaseID, Username: reader.Username, Verifier: reader.Verifier,
		})
		for _, err := range []error{
			ports.Tell(t.Context(), a, fence2(), prepared), ports.Tell(t.Context(), a, fence2(), reader), changed, removed, inspected,
		} {
			if !set.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		set.with(false)
		if !getsIn(s, "first") {
			t.Errorf("%s: the role does not get in any more", name)
		}
	}
	if _, err := ports.Do(t.Context(), a, fence2(), rotation()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

func TestHookSeesLoginsAndKinds(t *testing.T) {
	a, s := stand(t)
	mustAdmit(t, a)
	var seen []fakeagent.Call
	s.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		seen = append(seen, c)
		return fakeagent.Fault{}
	})
	if _, err := ports.Do(t.Context(), a, fence2(), rotation()); err != nil {
		t.Fatal(err)
	}
	want := fakeagent.Call{
		Method: "ChangeLogin", Fence: fence2(), Database: orders().DatabaseID, Username: reader.Username, Step: "rotate",
	}
	if len(seen) != 1 || seen[0] != want {
		t.Errorf("the hook saw %+v", seen)
	}
}

func TestHandsOnALoginThatIsNotThere(t *testing.T) {
	_, s := stand(t)
	for name, done := range map[string]bool{
		"SetConnect": s.SetConnect("x", false), "DriftPassword": s.DriftPassword("x", "pw"), "DropLogin": s.DropLogin("x"),
		"AddDependency":   s.AddDependency("x", role.Dependency{}),
		"AddDependencyIn": s.AddDependencyIn("orders", "x", role.Dependency{}), "DropDependencies": s.DropDependencies("x"),
		"May": s.May("x", "SELECT", "t"), "LogInDirectly": s.LogInDirectly("orders", "x", "pw"),
	} {
		if done {
			t.Errorf("%s found a login", name)
		}
	}
}

func TestAddDependencyIsInTheLoginsOwnDatabase(t *testing.T) {
	a, s := stand(t)
	mustAdmit(t, a)
	reason := role.Dependency{Kind: role.GrantDependency, ObjectType: "table", Schema: "public", Name: "t", Identity: "public.t"}
	if !s.AddDependency(reader.Username, reason) || s.AddDependencyIn("nothing", reader.Username, reason) {
		t.Error("AddDependency refuses a database, or AddDependencyIn takes none")
	}
	found, err := ports.Do(t.Context(), a, fence2(), command.RemoveRole{
		DatabaseID: reader.DatabaseID, Username: reader.Username, Generation: 2,
	})
	if err != nil || found.Truncated || len(found.List) != 1 || found.List[0] != reason {
		t.Errorf("got %+v (%v)", found, err)
	}
}

// A role of one connection: a session holds it, one by transaction does not.
func TestLimitCountsSessionsThatHoldAConnection(t *testing.T) {
	a, s := stand(t)
	mustAdmit(t, a)
	shared, err := s.Connect(home, "orders.transaction", reader.Username, "first")
	if err != nil || !getsIn(s, "first") {
		t.Fatalf("a session by transaction holds the connection (%v)", err)
	}
	held, err := s.Connect(home, "orders", reader.Username, "first")
	if err != nil || getsIn(s, "first") {
		t.Fatalf("a second connection gets in (%v)", err)
	}
	held.Close()
	if !getsIn(s, "first") || !shared.Alive() {
		t.Error("the connection is not given back")
	}
}
