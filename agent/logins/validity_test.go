package logins_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// belated asks the pooler about a password only when its validity has ended.
type belated struct {
	*pooler.Pooler
	until *time.Time
}

func (p belated) Prove(ctx context.Context, entry, login, password string) error {
	if p.until != nil {
		time.Sleep(time.Until(*p.until) + 50*time.Millisecond)
	}
	return p.Pooler.Prove(ctx, entry, login, password)
}

// The validity may end in the middle of the proof.
func TestPasswordThatLapsesWhileItIsProvenIsLapsed(t *testing.T) {
	agenttest.OverModelsWhole(t, testPasswordThatLapsesWhileItIsProvenIsLapsed)
}

func testPasswordThatLapsesWhileItIsProvenIsLapsed(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	var until time.Time
	l := openedAs(t, s, m, inProcess(t, s, s.PG.Port(), asItIs))
	x := inProcess(t, s, s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return belated{p, &until} })
	next := l.Renewed()
	until = time.Now().Add(2 * time.Second)
	next.Until = &until
	proof := agenttest.As[role.Proof](t, check.Must(x.Execute(t.Context(), l.Rotate(2, next)))(t))
	if !proof.Lapsed || proof.NewAccepted || !proof.OldRefused || !proof.NoneLeft {
		t.Errorf("%+v", proof)
	}
	if time.Now().Before(until) {
		t.Error("it was done before: the test shows nothing")
	}
}

// A look at a login ends in time, whatever it waits for.
func TestInspectionEndsInTime(t *testing.T) {
	s := survivalStack(t)
	x := inProcess(t, s, s.PG.Port(), asItIs)
	l := openedIn(t, s, x)
	lock := check.Must(s.Super.BeginTx(t.Context(), nil))(t)
	check.Must(lock.Exec("LOCK TABLE ledger.role"))(t)
	giveUp := time.AfterFunc(20*time.Second, func() { _ = lock.Rollback() })
	_, err := x.InspectLogin(t.Context(), command.InspectLogin{
		DatabaseID: l.DatabaseID(), Username: l.Username, Verifier: l.Verifier,
	})
	if no := ledger.AsRefusal(err); err == nil || no.Reason != command.ReasonUnavailable {
		t.Errorf("%v, want that it is unavailable", err)
	}
	if giveUp.Stop() {
		_ = lock.Rollback() // it has served
	}
}
