package agent_test

import (
	"context"
	"testing"
	"time"

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
	overModelsWhole(t, testPasswordThatLapsesWhileItIsProvenIsLapsed)
}

func testPasswordThatLapsesWhileItIsProvenIsLapsed(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	var until time.Time
	l := s.openedAs(t, m, s.inProcess(t, s.pg.Port(), asItIs))
	x := s.inProcess(t, s.pg.Port(), func(p *pooler.Pooler) poolerAPI { return belated{p, &until} })
	next := l.renewed()
	until = time.Now().Add(2 * time.Second)
	next.until = &until
	proof := as[role.Proof](t, check.Must(x.Execute(t.Context(), l.rotate(2, next)))(t))
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
	x := s.inProcess(t, s.pg.Port(), asItIs)
	l := s.openedIn(t, x)
	lock := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	check.Must(lock.Exec("LOCK TABLE ledger.role"))(t)
	giveUp := time.AfterFunc(20*time.Second, func() { _ = lock.Rollback() })
	_, err := x.InspectLogin(t.Context(), command.InspectLogin{
		DatabaseID: l.databaseID(), Username: l.username, Verifier: l.verifier,
	})
	if no := ledger.AsRefusal(err); err == nil || no.Reason != command.ReasonUnavailable {
		t.Errorf("%v, want that it is unavailable", err)
	}
	if giveUp.Stop() {
		_ = lock.Rollback() // it has served
	}
}
