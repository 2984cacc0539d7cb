package agentclient_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// laterAccess is a command of today with a field that was added later.
type laterAccess struct {
	command.SetAccess
	Reason string `json:"reason,omitempty" agent:"later"`
}

// agentOfVersion answers as an agent does that names these commands. What it does not know it refuses as invalid, for good.
func agentOfVersion(t *testing.T, commands *atomic.Pointer[string]) (*wire, ports.Agent) {
	t.Helper()
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		known := *commands.Load()
		switch {
		case r.Method == http.MethodGet:
			answer(200, `{"version":"x","commands":[`+known+`]}`)(rw, r)
		case known == old:
			refuse(http.StatusBadRequest, command.ReasonInvalid)(rw, r)
		default:
			answer(200, `{"result":{}}`)(rw, r)
		}
	})
	return w, agentOf(t, w.server(t))
}

const (
	old   = `"database.access"`
	newer = `"database.access","database.access.reason"`
)

func TestAFieldIsSentOnlyToAnAgentThatKnowsIt(t *testing.T) {
	var version atomic.Pointer[string]
	upgrade := func(to string) { version.Store(&to) }
	upgrade(old)
	w, a := agentOfVersion(t, &version)
	later := laterAccess{command.SetAccess{DatabaseID: database, Generation: 2}, "maintenance"}
	tell := func() error { return telling[command.None](later)(brief(t), a) }

	for range 2 {
		wantRefusal(t, tell(), command.ReasonTooOld)
	}
	wantRequests(t, w, 2) // it was asked what it knows, and told nothing
	upgrade(newer)
	for range 2 {
		check.NoError(t, tell(), "after the upgrade")
	}
	wantRequests(t, w, 5) // asked once more, told twice
	upgrade(old)
	wantRefusal(t, tell(), command.ReasonTooOld) // its "invalid" is no answer to what it does not know
	upgrade(newer)
	check.NoError(t, tell(), "after a second upgrade")
}

// What every agent knows is sent without asking, also in a command that could carry more.
func TestNothingIsAskedForWhatEveryAgentKnows(t *testing.T) {
	known := newer
	var version atomic.Pointer[string]
	version.Store(&known)
	w, a := agentOfVersion(t, &version)
	check.NoError(t, telling[command.None](laterAccess{SetAccess: command.SetAccess{DatabaseID: database}})(brief(t), a))
	wantRequests(t, w, 1)
}

func TestNothingIsDeliveredToAnAgentThatCannotBeAsked(t *testing.T) {
	w := newWire(t, answer(http.StatusBadGateway, "gone"))
	err := telling[command.None](laterAccess{Reason: "x"})(brief(t), agentOf(t, w.server(t)))
	wantUnreachable(t, err)
	wantRequests(t, w, 1)
}
