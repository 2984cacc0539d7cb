package pooler

import (
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestEvictClosesBothEntriesAndNobodyElse(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	for _, c := range [][2]string{{"shop", "shop"}, {"shop.transaction", "shop_rt"}, {"blog", "blog"}} {
		db := s.client(c[0], c[1], "")
		defer db.Close()
		check.NoError(t, db.PingContext(ctx))
	}
	check.NoError(t, s.pooler.Evict(ctx, OfLogin("shop_rt")))
	wantClients(t, s, "shop/shop", "blog/blog")
	check.NoError(t, s.pooler.Evict(ctx, OfDatabase("shop")))
	wantClients(t, s, "blog/blog")
	check.NoError(t, s.pooler.KillClients(ctx, "999999999"), "a client that is gone")
}

func wantClients(t *testing.T, s *stack, want ...string) {
	t.Helper()
	clients := check.Must(s.pooler.Clients(t.Context()))(t)
	got := map[string]bool{}
	for _, c := range clients {
		got[c.Entry+"/"+c.Login] = true
		age := time.Since(c.ConnectedAt)
		if age < -2*time.Second || age > time.Minute || c.Address != netip.MustParseAddr("127.0.0.1") {
			t.Errorf("client %+v", c)
		}
	}
	for _, w := range want {
		if !got[w] || len(got) != len(want) {
			t.Errorf("clients %v, want %v", got, want)
		}
	}
}
