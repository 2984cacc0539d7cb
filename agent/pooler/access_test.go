package pooler

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestLoginWorksAtItsOwnEntriesOnly(t *testing.T) {
	s := realStack(t)
	for _, entry := range append(EntryNames("shop"), EntryNames("blog")...) {
		for _, login := range []string{"shop", "shop_rt", "blog"} {
			err := s.enter(t, entry, login, "")
			own := strings.HasPrefix(entry, strings.TrimSuffix(login, "_rt"))
			if own && err != nil || !own && err == nil {
				t.Errorf("%s at %s: %v", login, entry, err)
			}
		}
	}
}

// TestManyLoginsOfOneDatabase passes the length from which PgBouncer keeps an HBA list in another way.
func TestManyLoginsOfOneDatabase(t *testing.T) {
	s := realStack(t)
	state := s.defaultState()
	for n := range 20 {
		state.Entries[1].Logins = append(state.Entries[1].Logins, Login{fmt.Sprintf("a%02d", n), 1}, Login{fmt.Sprintf("z%02d", n), 1})
	}
	check.NoError(t, s.pooler.Apply(t.Context(), state))
	check.NoError(t, s.enter(t, "blog", "blog", ""))
	if err := s.enter(t, "blog", "shop", ""); err == nil {
		t.Error("a login that is not in the list is let in")
	}
}

// TestNobodyReachesThePlatformsDatabases but the agent, as the account that asks for verifiers and from its own address.
func TestNobodyReachesThePlatformsDatabases(t *testing.T) {
	s := realStack(t)
	const right = ` password='auth "pw'`
	for _, entry := range []string{"pgherd", "postgres", "template1", "pgbouncer", canaryDatabase} {
		for _, login := range []string{"shop", "postgres", "pgbouncer", s.settings.AdminUser, s.settings.AuthUser} {
			for _, password := range []string{"", ` password='admin "pw'`, right} {
				for _, from := range []string{"127.0.0.1", "::1"} {
					own := entry == "pgherd" && login == s.settings.AuthUser && password == right && from == "127.0.0.1"
					if err := s.enter(t, entry, login, "host="+from+password); (err == nil) != own {
						t.Errorf("%s at %s from %s: %v", login, entry, from, err)
					}
				}
			}
		}
	}
	check.NoError(t, s.pooler.Ping(t.Context()))
}

func TestTLSIsRequired(t *testing.T) {
	s := realStack(t)
	err := s.enter(t, "shop", "shop", "sslmode=disable")
	if err == nil || !strings.Contains(err.Error(), "SSL required") {
		t.Errorf("without TLS: %v", err)
	}
}

func TestClosedGateRefuses(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	check.NoError(t, s.pooler.Prove(ctx, "shop", "shop", "shop-pw"))
	if err := s.pooler.ProveRefused(ctx, "shop", "shop", "shop-pw"); !errors.Is(err, ErrAdmitted) {
		t.Errorf("an open gate proves refusal: %v", err)
	}
	check.NoError(t, s.pooler.ProveRefused(ctx, "shop", "shop", "other"), "wrong password")
	execute(t, s, "UPDATE pooler.gate SET open = false WHERE login = 'shop'")
	for _, entry := range EntryNames("shop") {
		check.NoError(t, s.pooler.ProveRefused(ctx, entry, "shop", "shop-pw"), entry)
	}
	check.NoError(t, s.enter(t, "shop", "shop_rt", ""), "the gate of another login")
}

func TestAllowlistHoldsForNewConnectionsWithinASecond(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	client := s.client("shop", "shop", "")
	defer client.Close()
	check.NoError(t, client.PingContext(ctx))
	state := s.defaultState()
	state.Entries[0].Allow = []netip.Prefix{network("192.0.2.0/24"), network("2001:db8::/32")}
	began := time.Now()
	check.NoError(t, s.pooler.Apply(ctx, state))
	for _, entry := range EntryNames("shop") {
		if err := s.enter(t, entry, "shop", ""); err == nil || !strings.Contains(err.Error(), "no authentication method") {
			t.Errorf("%s from outside: %v", entry, err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s", took)
	}
	check.NoError(t, s.enter(t, "blog", "blog", ""), "another database")
	check.NoError(t, s.pooler.Prove(ctx, "shop", "shop", "shop-pw"), "proof through the unix socket")
	evictOutside(t, s, state.Entries[0].Allow)
	state.Entries[0].Allow = []netip.Prefix{network("127.0.0.1/32")}
	check.NoError(t, s.pooler.Apply(ctx, state))
	check.NoError(t, s.enter(t, "shop", "shop", ""), "from inside")
	if err := s.enter(t, "shop", "shop", "host=::1"); err == nil {
		t.Error("IPv6 is let in by an IPv4 network")
	}
}

func evictOutside(t *testing.T, s *stack, allow []netip.Prefix) {
	t.Helper()
	count := func() int {
		clients := check.Must(s.pooler.Clients(t.Context()))(t)
		return len(slices.DeleteFunc(clients, func(c Client) bool { return !NotAllowed("shop", allow).matches(c) }))
	}
	if count() != 1 {
		t.Errorf("%d open clients from outside, want one", count())
	}
	check.NoError(t, s.pooler.Evict(t.Context(), NotAllowed("shop", allow)))
	if count() != 0 {
		t.Error("a client from outside is left")
	}
}

// TestTransactionsLeaveNothingBehind holds that a server connection is reset after each transaction of the second entry.
func TestTransactionsLeaveNothingBehind(t *testing.T) {
	s := realStack(t)
	for entry, want := range map[string]string{"shop": "pg_catalog", "shop.transaction": `"$user", public`} {
		db := s.client(entry, "shop", "")
		defer db.Close()
		db.SetMaxOpenConns(1)
		var path string
		check.Must(db.Exec("SET search_path = pg_catalog"))(t)
		if err := db.QueryRow("SHOW search_path").Scan(&path); err != nil || path != want {
			t.Errorf("%s: search_path %s, %v", entry, path, err)
		}
	}
}

func TestCapsMakeClientsWait(t *testing.T) {
	s := realStack(t)
	var wg sync.WaitGroup
	var open, most atomic.Int64
	for range 6 {
		wg.Go(func() {
			db := s.client("shop", "shop_rt", "")
			defer db.Close()
			if _, err := db.Exec("SELECT 1"); err != nil {
				t.Error(err)
				return
			}
			now := open.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			time.Sleep(100 * time.Millisecond)
			open.Add(-1)
		})
	}
	wg.Wait()
	if most.Load() > 2 {
		t.Errorf("%d at once over a limit of 2", most.Load())
	}
}
