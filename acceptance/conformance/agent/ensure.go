package agent

import (
	"slices"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func ensureManaged(t *testing.T, s Stand) {
	spec := newSpec(database.Managed)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), spec))
	wantStands(t, s.Server, spec)
}

func ensureSingleLogin(t *testing.T, s Stand) {
	spec := newSpec(database.SingleLogin)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), spec))
	wantStands(t, s.Server, spec)
	wrong := spec.Logins[0]
	wrong.Password += "x"
	if canLogIn(t, s.Server, spec.Name, wrong) {
		t.Error("a wrong password gets in")
	}
}

// wantStands checks that database and logins exist once and that every login gets in.
func wantStands(t *testing.T, v ServerView, spec command.EnsureDatabase) {
	t.Helper()
	if n := count(v.Databases(), spec.Name); n != 1 {
		t.Errorf("%d databases %s", n, spec.Name)
	}
	for _, l := range spec.Logins {
		if n := count(v.Logins(), l.Username); n != 1 {
			t.Errorf("%d logins %s", n, l.Username)
		}
	}
	wantLogIn(t, v, spec, true)
}

// wantNothing checks that neither the database nor any of its logins is left.
func wantNothing(t *testing.T, v ServerView, spec command.EnsureDatabase) {
	t.Helper()
	if slices.Contains(v.Databases(), spec.Name) {
		t.Errorf("the database %s is left", spec.Name)
	}
	for _, l := range spec.Logins {
		if slices.Contains(v.Logins(), l.Username) {
			t.Errorf("the login %s is left", l.Username)
		}
	}
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

func ensureAgain(t *testing.T, s Stand) {
	spec, fence := made(t, s)
	noError(t, ports.Tell(bounded(t), s.Agent, fence, spec))
	fence.Epoch++ // another worker goes on with the operation
	noError(t, ports.Tell(bounded(t), s.Agent, fence, spec))
	wantStands(t, s.Server, spec)
}

// ensureByAnother asks again on behalf of another operation, as one that finds a database whole does.
func ensureByAnother(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), spec))
	wantStands(t, s.Server, spec)
	other := spec
	other.Name = "x" + spec.Name
	other.Logins = []command.Login{newLogin(database.OwnerLogin, other.Name)}
	s.refuses(t, newFence(), other, command.ReasonConflict)
	wantStands(t, s.Server, spec)
	wantNothing(t, s.Server, other)
}

func ensureAtOnce(t *testing.T, s Stand) {
	spec, fence := newSpec(database.Managed), newFence()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := ports.Tell(bounded(t), s.Agent, fence, spec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantStands(t, s.Server, spec)
}

func ensureApart(t *testing.T, s Stand) {
	one, _ := made(t, s)
	other, _ := made(t, s)
	if canLogIn(t, s.Server, one.Name, other.Logins[0]) || canLogIn(t, s.Server, other.Name, one.Logins[0]) {
		t.Error("the login of one database gets into another")
	}
	wantLogIn(t, s.Server, one, true)
	wantLogIn(t, s.Server, other, true)
}

func ensureConflict(t *testing.T, s Stand) {
	spec, fence := made(t, s)
	other := spec
	other.ConnectionCap = 3
	s.refuses(t, fence, other, command.ReasonConflict)
	other = spec
	other.Logins = []command.Login{newLogin(database.OwnerLogin, spec.Name)}
	s.refuses(t, fence, other, command.ReasonConflict)
	wantStands(t, s.Server, spec)
	if canLogIn(t, s.Server, spec.Name, other.Logins[0]) {
		t.Error("the password of the refused command gets in")
	}
}

func ensureFenced(t *testing.T, s Stand) {
	spec, late := newSpec(database.SingleLogin), newFence()
	ahead := ports.Fence{OperationID: late.OperationID, Epoch: late.Epoch + 1}
	noError(t, ports.Tell(bounded(t), s.Agent, ahead, spec))
	s.refuses(t, late, spec, command.ReasonFenced)
	wantReason(t, ports.Close(bounded(t), s.Agent, late), command.ReasonFenced)
	wantStands(t, s.Server, spec)
}

func ensureForeignName(t *testing.T, s Stand) {
	spec, fence := newSpec(database.Managed), newFence()
	s.Server.AddForeign(t, spec.Name)
	s.refuses(t, fence, spec, command.ReasonNameTaken)
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	for _, l := range spec.Logins {
		if slices.Contains(s.Server.Logins(), l.Username) {
			t.Errorf("the login %s is left", l.Username)
		}
	}
	wantLogIn(t, s.Server, spec, false)
	s.refuses(t, fence, spec, command.ReasonClosed)
}

func ensureTakenName(t *testing.T, s Stand) {
	first, _ := made(t, s)
	second, fence := newSpec(database.SingleLogin), newFence()
	second.Name, second.Logins[0].Username = first.Name, first.Name
	s.refuses(t, fence, second, command.ReasonNameTaken)
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	wantStands(t, s.Server, first)
	if canLogIn(t, s.Server, first.Name, second.Logins[0]) {
		t.Error("the password of the refused command gets in")
	}
}

func ensureUnproven(t *testing.T, s Stand) {
	spec, fence := newSpec(database.Managed), newFence()
	proof := spec.Logins[0].Password
	spec.Logins[0].Password = "not-the-password-of-the-verifier"
	wantRefused(t, ports.Tell(bounded(t), s.Agent, fence, spec), proof, spec.Logins[0].Password)
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	wantNothing(t, s.Server, spec)

	again := spec // the name and the ID are free again
	again.Logins = slices.Clone(spec.Logins)
	again.Logins[0].Password = proof
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), again))
	wantStands(t, s.Server, again)
}

func closeUnseen(t *testing.T, s Stand) {
	spec, fence := newSpec(database.SingleLogin), newFence()
	for range 2 {
		noError(t, ports.Close(bounded(t), s.Agent, fence))
	}
	s.refuses(t, fence, spec, command.ReasonClosed)
	fence.Epoch++
	s.refuses(t, fence, spec, command.ReasonClosed)
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	wantNothing(t, s.Server, spec)
}

func closeCompleteDatabase(t *testing.T, s Stand) {
	spec, fence := made(t, s)
	for range 2 {
		wantReason(t, ports.Close(bounded(t), s.Agent, fence), command.ReasonCompleted)
	}
	wantStands(t, s.Server, spec)
	noError(t, ports.Tell(bounded(t), s.Agent, fence, spec))
}

func sizeOfDatabase(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	size := must(ports.Ask(bounded(t), s.Agent, command.DatabaseSize{DatabaseID: spec.DatabaseID}))(t)
	if size.Bytes < 1<<20 {
		t.Errorf("an empty database of PostgreSQL has some megabytes, not %d bytes", size.Bytes)
	}
	_, err := ports.Ask(bounded(t), s.Agent, command.DatabaseSize{DatabaseID: newID[id.DatabaseID]()})
	wantReason(t, err, command.ReasonNotFound)
}
