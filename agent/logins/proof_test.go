package logins_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// leaky lets the old password in at one entry.
type leaky struct {
	*pooler.Pooler
	suffix string
}

func (p leaky) ProveRefused(ctx context.Context, entry, login, password string) error {
	if strings.HasSuffix(entry, pooler.TransactionSuffix) == (p.suffix != "") {
		return pooler.ErrAdmitted
	}
	return p.Pooler.ProveRefused(ctx, entry, login, password)
}

// The old password has to be refused at each entry.
func TestOldPasswordIsTriedAtEachEntry(t *testing.T) {
	agenttest.OverModelsWhole(t, testOldPasswordIsTriedAtEachEntry)
}

func testOldPasswordIsTriedAtEachEntry(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	l := openedAs(t, s, m, inProcess(t, s, s.PG.Port(), asItIs))
	rotation := l.Rotate(2, l.Renewed())
	for _, suffix := range []string{"", pooler.TransactionSuffix} {
		x := inProcess(t, s, s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return leaky{p, suffix} })
		_, err := x.Execute(t.Context(), rotation)
		if no := ledger.AsRefusal(err); err == nil || no.Reason != command.ReasonUnavailable {
			t.Errorf("let in at %q: %v, want that it is unavailable", suffix, err)
		}
	}
	check.Must(inProcess(t, s, s.PG.Port(), asItIs).Execute(t.Context(), rotation))(t)
}
