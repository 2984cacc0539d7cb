package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeclock"
)

// Two operators change different things of one key, and of one server, at the same moment: neither change is lost. A lost one
// would open a key to networks that it was just closed to.
func TestChangesOfTwoOperatorsAreBothKept(t *testing.T) {
	w := newInviting(t, 1)
	one, other := w.processes[0].Operator, w.processes[1].Operator
	record := w.databases[0].Record()
	key, _, err := one.CreateKey(t.Context(), keys.NewKey{
		AccountID: record.AccountID, Label: "k", Scope: account.FullAccount,
	})
	check.NoError(t, err)
	for round := range 8 {
		days := account.Expiry{After: time.Duration(round+1) * 24 * time.Hour}
		from := network.List(fmt.Sprintf("10.0.%d.0/24", round))
		var both sync.WaitGroup
		both.Go(func() {
			_, err := one.BindKey(t.Context(), key.ID, keys.Bounds{Expires: &days})
			_, failed := one.ChangeServer(t.Context(), record.ServerID, func(s *server.Server) { s.Capacity = 100 + round })
			if err != nil || failed != nil {
				t.Error(err, failed)
			}
		})
		both.Go(func() {
			_, err := other.BindKey(t.Context(), key.ID, keys.Bounds{Networks: &from})
			_, failed := other.ChangeServer(t.Context(), record.ServerID, func(s *server.Server) { s.PublicPort = 7000 + round })
			if err != nil || failed != nil {
				t.Error(err, failed)
			}
		})
		both.Wait()
		s, _, err := one.Server(t.Context(), record.ServerID)
		check.NoError(t, err)
		got := check.Must(one.BindKey(t.Context(), key.ID, keys.Bounds{}))(t)
		ends := check.Must(days.Ends(fakeclock.New().Now()))(t)
		if s.Capacity != 100+round || s.PublicPort != 7000+round || got.Networks != from || !got.ExpiresAt.Equal(*ends) {
			t.Errorf("round %d: %+v, %+v", round, s, got)
		}
	}
}
