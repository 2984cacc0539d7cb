package pooler

import (
	"errors"
	"net/netip"
	"testing"
	"time"
)

func TestEvictClosesBothEntriesAndNobodyElse(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	for _, c := range [][2]string{{"shop", "shop"}, {"shop.transaction", "shop_rt"}, {"blog", "blog"}} {
		db := s.client(c[0], c[1], "")
		defer db.Close()
		if err := db.PingContext(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.pooler.Evict(ctx, OfLogin("shop_rt")); err != nil {
		t.Fatal(err)
	}
	wantClients(t, s, "shop/shop", "blog/blog")
	if err := s.pooler.Evict(ctx, OfDatabase("shop")); err != nil {
		t.Fatal(err)
	}
	wantClients(t, s, "blog/blog")
	if err := s.pooler.KillClients(ctx, "999999999"); err != nil {
		t.Errorf("a client that is gone: %v", err)
	}
}

func wantClients(t *testing.T, s *stack, want ...string) {
	t.Helper()
	clients, err := s.pooler.Clients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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

func TestReconnectReplacesServerConnectionsOfBothEntries(t *testing.T) {
	s := realStack(t)
	for _, entry := range EntryNames("shop") {
		before := serverPID(t, s, entry)
		if again := serverPID(t, s, entry); again != before {
			t.Fatalf("%s: the server connection is not pooled", entry)
		}
		if err := s.pooler.Reconnect(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		if after := serverPID(t, s, entry); after == before {
			t.Errorf("%s keeps its server connection", entry)
		}
	}
	if err := s.pooler.Reconnect(t.Context(), "nosuch"); err == nil || errors.Is(err, ErrUnreachable) {
		t.Errorf("a database that is not there: %v", err)
	}
}

func serverPID(t *testing.T, s *stack, entry string) (pid int) {
	t.Helper()
	db := s.client(entry, "shop", "")
	defer db.Close()
	if err := db.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
