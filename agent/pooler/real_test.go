package pooler

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

func TestNobodyReachesThePlatformsDatabases(t *testing.T) {
	s := realStack(t)
	for _, entry := range []string{"pgherd", "postgres", "template1", "pgbouncer", canaryDatabase} {
		for _, login := range []string{"shop", "postgres", "pgbouncer", s.settings.AdminUser, s.settings.AuthUser} {
			for _, password := range []string{"", `password='admin "pw'`, `password='auth "pw'`} {
				if err := s.enter(t, entry, login, password); err == nil {
					t.Errorf("%s may log in at %s", login, entry)
				}
			}
		}
	}
	if err := s.pooler.Ping(t.Context()); err != nil {
		t.Error(err)
	}
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
	if err := s.pooler.Prove(ctx, "shop", "shop", "shop-pw"); err != nil {
		t.Fatal(err)
	}
	if err := s.pooler.ProveRefused(ctx, "shop", "shop", "shop-pw"); !errors.Is(err, ErrAdmitted) {
		t.Errorf("an open gate proves refusal: %v", err)
	}
	if err := s.pooler.ProveRefused(ctx, "shop", "shop", "other"); err != nil {
		t.Errorf("wrong password: %v", err)
	}
	execute(t, s, "UPDATE pooler.gate SET open = false WHERE login = 'shop'")
	for _, entry := range EntryNames("shop") {
		if err := s.pooler.ProveRefused(ctx, entry, "shop", "shop-pw"); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if err := s.enter(t, "shop", "shop_rt", ""); err != nil {
		t.Errorf("the gate of another login: %v", err)
	}
}

func TestVerifierIsGivenOnlyToThoseWhoMayLogIn(t *testing.T) {
	s := realStack(t)
	known := func() (n int) {
		row := s.super.QueryRowContext(t.Context(), "SELECT count(*) FROM pooler.login_secret('shop', 'shop')")
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Cleanup(func() { execute(t, s, "ALTER ROLE shop LOGIN NOSUPERUSER VALID UNTIL 'infinity' PASSWORD 'shop-pw'") })
	if known() != 1 {
		t.Fatal("an open login has no verifier")
	}
	for _, change := range [][2]string{
		{"ALTER ROLE shop NOLOGIN", "ALTER ROLE shop LOGIN"},
		{"ALTER ROLE shop SUPERUSER", "ALTER ROLE shop NOSUPERUSER"},
		{"ALTER ROLE shop VALID UNTIL '2001-01-01'", "ALTER ROLE shop VALID UNTIL 'infinity'"},
		{"SET password_encryption = md5; ALTER ROLE shop PASSWORD 'shop-pw'; RESET password_encryption", "ALTER ROLE shop PASSWORD 'shop-pw'"},
		{"DELETE FROM pooler.gate WHERE login = 'shop'", "INSERT INTO pooler.gate VALUES ('shop', 'shop', true)"},
	} {
		execute(t, s, change[0])
		if known() != 0 {
			t.Errorf("a verifier after: %s", change[0])
		}
		execute(t, s, change[1])
		if known() != 1 {
			t.Errorf("no verifier after: %s", change[1])
		}
	}
}

func TestPoolersLoginCanOnlyAskForVerifiers(t *testing.T) {
	s := realStack(t)
	for statement, want := range map[string]bool{
		"SELECT * FROM pooler.login_secret('shop', 'shop')":      true,
		"SELECT rolpassword FROM pg_authid":                      false,
		"SELECT * FROM pooler.gate":                              false,
		"UPDATE pooler.gate SET open = true":                     false,
		"CREATE TABLE pooler.mine ()":                            false,
		"SET ROLE pgherd_secret_reader":                          false,
		"CREATE FUNCTION pooler.f() RETURNS int RETURN 1":        false,
		"ALTER FUNCTION pooler.login_secret STABLE":              false,
		"SET ROLE pgherd_agent":                                  false,
		"SELECT pg_read_file('postgresql.conf')":                 false,
		"SELECT * FROM pooler.login_secret('postgres','pgherd')": true, // and returns nothing
	} {
		_, err := s.super.ExecContext(t.Context(), "BEGIN; SET LOCAL SESSION AUTHORIZATION pgherd_pooler; "+statement+"; ROLLBACK")
		if (err == nil) != want {
			t.Errorf("%s: %v", statement, err)
		}
		execute(t, s, "ROLLBACK; RESET SESSION AUTHORIZATION")
	}
}

func TestAllowlistHoldsForNewConnectionsWithinASecond(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	held := s.client("shop", "shop", "")
	defer held.Close()
	if err := held.PingContext(ctx); err != nil {
		t.Fatal(err)
	}
	state := s.defaultState()
	state.Entries[0].Allow = []netip.Prefix{network("192.0.2.0/24"), network("2001:db8::/32")}
	began := time.Now()
	if err := s.pooler.Apply(ctx, state); err != nil {
		t.Fatal(err)
	}
	for _, entry := range EntryNames("shop") {
		if err := s.enter(t, entry, "shop", ""); err == nil || !strings.Contains(err.Error(), "no authentication method") {
			t.Errorf("%s from outside: %v", entry, err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s", took)
	}
	if err := s.enter(t, "blog", "blog", ""); err != nil {
		t.Errorf("another database: %v", err)
	}
	if err := s.pooler.Prove(ctx, "shop", "shop", "shop-pw"); err != nil {
		t.Errorf("proof through the unix socket: %v", err)
	}
	evictOutside(t, s, state.Entries[0].Allow)
	state.Entries[0].Allow = []netip.Prefix{network("127.0.0.1/32")}
	if err := s.pooler.Apply(ctx, state); err != nil {
		t.Fatal(err)
	}
	if err := s.enter(t, "shop", "shop", ""); err != nil {
		t.Errorf("from inside: %v", err)
	}
	if err := s.enter(t, "shop", "shop", "host=::1"); err == nil {
		t.Error("IPv6 is let in by an IPv4 network")
	}
}

func evictOutside(t *testing.T, s *stack, allow []netip.Prefix) {
	t.Helper()
	count := func() int {
		n, err := s.pooler.Count(t.Context(), NotAllowed("shop", allow))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if count() != 1 {
		t.Errorf("%d open clients from outside, want the held one", count())
	}
	if err := s.pooler.Evict(t.Context(), NotAllowed("shop", allow)); err != nil {
		t.Fatal(err)
	}
	if count() != 0 {
		t.Error("a client from outside is left")
	}
}

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
		if age := time.Since(c.ConnectedAt); age < -2*time.Second || age > time.Minute || c.Address != netip.MustParseAddr("127.0.0.1") {
			t.Errorf("client %+v", c)
		}
	}
	for _, w := range want {
		if !got[w] || len(got) != len(want) {
			t.Errorf("clients %v, want %v", got, want)
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

func TestReloadThatTakesNothingOverIsSeen(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	state := s.defaultState()
	state.Entries[0].ConnectionCap = 40
	files, err := Render(state)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(Files) Files{
		"syntax error in a part": func(f Files) Files {
			f.Parts = append([]File(nil), f.Parts...)
			f.Parts[0].Content = append([]byte("[databases]\nbroken\n"), f.Parts[0].Content...)
			return f
		},
		"missing part": func(f Files) Files { f.Parts = f.Parts[1:]; return f },
		"unknown setting": func(f Files) Files {
			f.Main.Content = []byte("[pgbouncer]\nno_such = 1\n" + string(f.Main.Content))
			return f
		},
		"cut off before its mark": func(f Files) Files { f.Main.Content = f.Main.Content[:len(f.Main.Content)-30]; return f },
	} {
		spoilt := spoil(files)
		_ = os.Remove(filepath.Join(s.settings.Dir, files.Parts[0].Name))
		if err := writeFiles(s.settings.Dir, spoilt, s.owner()); err != nil {
			t.Fatal(err)
		}
		if err := s.pooler.reload(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.pooler.readBack(ctx, state, files); !errors.Is(err, ErrNotTakenOver) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.pooler.Apply(ctx, s.defaultState()); err != nil {
			t.Errorf("%s: no way back: %v", name, err)
		}
	}
}

// TestReadBackSeesEachDifference holds that the mark is not the only thing compared.
func TestReadBackSeesEachDifference(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	files, err := Render(s.defaultState())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.pooler.readBack(ctx, s.defaultState(), files); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*State, *Files){
		"cap":            func(st *State, _ *Files) { st.Entries[0].ConnectionCap = 9 },
		"entry missing":  func(st *State, _ *Files) { st.Entries = append(st.Entries, Entry{Database: "more"}) },
		"entry too many": func(st *State, _ *Files) { st.Entries = st.Entries[:1] },
		"login limit":    func(st *State, _ *Files) { st.Entries[1].Logins[0].MaxConnections = 3 },
		"login missing":  func(st *State, _ *Files) { st.Entries[1].Logins = append(st.Entries[1].Logins, Login{"more", 1}) },
		"rules":          func(_ *State, f *Files) { f.Canary = "other" },
		"mark":           func(_ *State, f *Files) { f.Mark = "other" },
	} {
		wanted, f := s.defaultState(), files
		change(&wanted, &f)
		if err := s.pooler.readBack(ctx, wanted, f); !errors.Is(err, ErrNotTakenOver) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallersShareReloads(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	var mu sync.Mutex
	var reads int
	limit := 8
	read := func(context.Context) (State, error) {
		mu.Lock()
		defer mu.Unlock()
		reads++
		state := s.defaultState()
		state.Entries[1].Logins[0].MaxConnections = limit
		return state, nil
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			mu.Lock()
			limit++
			mine := int64(limit)
			mu.Unlock()
			if err := s.pooler.Sync(ctx, read); err != nil {
				t.Error(err)
			}
			if shown := limitOf(t, s, "blog"); shown < mine {
				t.Errorf("limit %d after Sync, committed %d before", shown, mine)
			}
		})
	}
	wg.Wait()
	if reads > 30 {
		t.Errorf("%d reloads for 100 callers", reads)
	}
}

func limitOf(t *testing.T, s *stack, login string) (limit int64) {
	t.Helper()
	err := s.pooler.each(t.Context(), "SHOW USERS", func(r row) error {
		if r.text("name") == login {
			limit = r.number("max_user_connections")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return limit
}

func TestCrashOfPgBouncerIsRecovered(t *testing.T) {
	s := realStack(t)
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan error, 10)
	var wg sync.WaitGroup
	wg.Go(func() { s.pooler.Watch(ctx, 30*time.Millisecond, func(err error) { changes <- err }) })
	defer wg.Wait()
	defer cancel()

	s.killBouncer()
	if err := <-changes; !errors.Is(err, ErrUnreachable) {
		t.Errorf("after the crash: %v", err)
	}
	state := s.defaultState()
	state.Entries[0].Logins[1].MaxConnections = 5
	if err := s.pooler.Apply(ctx, state); !errors.Is(err, ErrUnreachable) {
		t.Errorf("Apply without PgBouncer: %v", err)
	}
	s.bouncer = s.command(s.tools.PgBouncer, "-q", ConfigFile(s.settings.Dir))
	s.bouncer.SysProcAttr.Setpgid = true
	if err := s.bouncer.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-changes:
		if err != nil {
			t.Errorf("after the restart: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the return of PgBouncer was not noticed")
	}
	if got := limitOf(t, s, "shop_rt"); got != 5 {
		t.Errorf("limit %d after the restart, want 5", got)
	}
	if err := s.enter(t, "shop", "shop", ""); err != nil {
		t.Error(err)
	}
}

// TestStoppedPgBouncerHangsNobody holds that a process that answers nothing ends in the caller's deadline.
func TestStoppedPgBouncerHangsNobody(t *testing.T) {
	s := realStack(t)
	freeze(t, s)
	for name, call := range map[string]func(context.Context) error{
		"ping":    s.pooler.Ping,
		"clients": func(ctx context.Context) error { _, err := s.pooler.Clients(ctx); return err },
		"prove":   func(ctx context.Context) error { return s.pooler.Prove(ctx, "shop", "shop", "shop-pw") },
		"evict":   func(ctx context.Context) error { return s.pooler.Evict(ctx, OfLogin("shop")) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		cancel()
	}
}

func execute(t testing.TB, s *stack, statement string) {
	t.Helper()
	if _, err := s.super.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkFiveThousandDatabases changes one allowlist among 5,000 databases with 30,000 logins: render, write, reload, read back.
func BenchmarkFiveThousandDatabases(b *testing.B) {
	s := realStack(b)
	state := bigState(s.settings)
	if err := s.pooler.Apply(b.Context(), state); err != nil {
		b.Fatal(err)
	}
	var worst time.Duration
	for n := 0; b.Loop(); n++ {
		state.Entries[n%len(state.Entries)].Allow = []netip.Prefix{network("10.0.0.0/8")}
		began := time.Now()
		if err := s.pooler.Apply(b.Context(), state); err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(worst.Seconds(), "worst-s")
}

func bigState(settings Settings) State {
	state := State{Settings: settings}
	for n := range 5000 {
		e := Entry{Database: fmt.Sprintf("database-%05d", n), ConnectionCap: 20}
		e.Logins = append(e.Logins, Login{e.Database, 20})
		for role := range 5 {
			e.Logins = append(e.Logins, Login{fmt.Sprintf("pgh_%032d_c%d", n, role), 5})
		}
		state.Entries = append(state.Entries, e)
	}
	return state
}
