package pooler

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/acceptance/check"
)

func testSettings() Settings {
	s := DefaultSettings()
	s.Dir, s.SocketDir = "/var/lib/pgherd/pooler", "/run/pgherd"
	s.TLSCertFile, s.TLSKeyFile = "/etc/pgherd/tls.crt", "/etc/pgherd/tls.key"
	s.AuthPassword, s.AdminPassword = "auth-secret", "admin-secret"
	return s
}

func network(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func contentOf(t *testing.T, f Files, prefix string) string {
	t.Helper()
	for _, p := range append(f.Parts, f.Main) {
		if strings.HasPrefix(p.Name, prefix) {
			return string(p.Content)
		}
	}
	t.Fatalf("no file %q", prefix)
	return ""
}

func TestRenderSmallState(t *testing.T) {
	files, err := Render(State{Settings: testSettings(), Entries: []Entry{
		{Database: "shop", ConnectionCap: 20, Allow: []netip.Prefix{network("10.0.0.0/8"), network("2001:db8::/32")},
			Logins: []Login{{"shop", 20}, {"pgh_1_rt", 7}}},
		{Database: "shop-b", Logins: []Login{{"shop-b", 0}}},
		{Database: "moved", ConnectionCap: 4, Logins: []Login{{"moved", 0}}, Elsewhere: Socket{"/var/lib/pgherd/forward", 7},
			Allow: []netip.Prefix{network("10.0.0.0/8")}, Welcome: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
	}})
	check.NoError(t, err)
	query := func(db string) string {
		return "auth_dbname='pgherd' auth_query='SELECT login, secret FROM pooler.login_secret($1, ''" + db + "'')'"
	}
	at, there := " = host='127.0.0.1' port=5432 dbname=", " = host='/var/lib/pgherd/forward' port=7 dbname="
	equalText(t, contentOf(t, files, "databases-"), strings.Join([]string{"[databases]",
		"shop.transaction" + at + "'shop' pool_mode=transaction pool_size=5 max_db_connections=5 " + query("shop"),
		"shop-b.transaction" + at + "'shop-b' pool_mode=transaction pool_size=15 max_db_connections=0 " + query("shop-b"),
		"shop-b" + at + "'shop-b' pool_mode=session pool_size=45 max_db_connections=0 " + query("shop-b"),
		"shop" + at + "'shop' pool_mode=session pool_size=15 max_db_connections=15 " + query("shop"),
		"pgherd" + at + "'pgherd' pool_mode=session pool_size=4",
		"moved.transaction" + there + "'moved.transaction' pool_mode=transaction pool_size=1 max_db_connections=1 " + query("moved"),
		"moved" + there + "'moved' pool_mode=session pool_size=3 max_db_connections=3 " + query("moved"), ""}, "\n"))
	equalText(t, contentOf(t, files, "users-"), "[users]\nshop = max_user_connections=20\npgh_1_rt = max_user_connections=7\n")
	equalText(t, contentOf(t, files, "accounts-"),
		"\"pgherd_pooler_admin\" \"admin-secret\"\n\"pgherd_pooler\" \"auth-secret\"\n")
	equalText(t, contentOf(t, files, "hba-"), strings.Join([]string{
		`hostssl "shop-b","shop-b.transaction" "shop-b" 0.0.0.0/0 scram-sha-256`,
		`hostssl "shop-b","shop-b.transaction" "shop-b" ::/0 scram-sha-256`,
		`hostssl "shop","shop.transaction" "shop","pgh_1_rt" 10.0.0.0/8 scram-sha-256`,
		`hostssl "shop","shop.transaction" "shop","pgh_1_rt" 2001:db8::/32 scram-sha-256`,
		`hostssl "moved","moved.transaction" "moved" 10.0.0.0/8 scram-sha-256`,
		`hostssl "moved","moved.transaction" "moved" 192.0.2.1/32 scram-sha-256`,
		`hostssl "pgherd" "pgherd_pooler" 127.0.0.1/32 scram-sha-256`,
		`local "pgherd_canary" "` + files.Canary + `" reject`,
		"local all all scram-sha-256", ""}, "\n"))
}

func equalText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestMainFileHoldsWhatIsPromised(t *testing.T) {
	files := check.Must(Render(State{Settings: testSettings()}))(t)
	main := string(files.Main.Content)
	for _, line := range []string{
		"client_tls_sslmode = require", "auth_type = hba", "client_login_timeout = 5", "server_login_retry = 0.2",
		"max_prepared_statements = 200", "query_wait_timeout = 30", "server_reset_query = DISCARD ALL",
		"server_reset_query_always = 1", "ignore_startup_parameters = extra_float_digits, extra_float_digits",
		"max_packet_size = 67108864", "max_client_conn = 10000", "log_connections = 0",
		"max_db_client_connections = 2000", "unix_socket_mode = 0700", "auth_user = pgherd_pooler",
		"admin_users = pgherd_pooler_admin",
	} {
		if !strings.Contains(main, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(main, "secret") {
		t.Error("a password stands in the main file, which is shown by SHOW CONFIG")
	}
	if strings.Count(main, "[") != 1 || strings.Index(main, "%include") > strings.Index(main, "[pgbouncer]") {
		t.Error("[pgbouncer] must stand once, after the parts: a section's start resets its settings")
	}
	if !strings.HasSuffix(main, "\nsyslog_ident = "+files.Mark+"\n") {
		t.Error("the mark must be the last line")
	}
}

func TestSharesOfACap(t *testing.T) {
	for limit, want := range map[int][2]int{1: {1, 1}, 2: {1, 1}, 3: {2, 1}, 4: {3, 1}, 8: {6, 2}, 20: {15, 5}, 200: {150, 50}} {
		session, transaction := Shares(limit)
		if got := [2]int{session, transaction}; got != want {
			t.Errorf("Shares(%d) = %v, want %v", limit, got, want)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	with := func(e Entry) State { return State{Settings: testSettings(), Entries: []Entry{e}} }
	set := func(change func(*Settings)) State {
		s := testSettings()
		change(&s)
		return State{Settings: s}
	}
	long := strings.Repeat("a", 52)
	cases := map[string]State{
		"empty name":            with(Entry{}),
		"dot in name":           with(Entry{Database: "a.transaction"}),
		"quote in name":         with(Entry{Database: "a'b"}),
		"line break in name":    with(Entry{Database: "a\nb"}),
		"name too long":         with(Entry{Database: long}),
		"the console":           with(Entry{Database: "pgbouncer"}),
		"maintenance database":  with(Entry{Database: "pgherd"}),
		"the canary":            with(Entry{Database: canaryDatabase}),
		"negative cap":          with(Entry{Database: "a", ConnectionCap: -1}),
		"host bits":             with(Entry{Database: "a", Allow: []netip.Prefix{network("10.0.0.1/8")}}),
		"mapped address":        with(Entry{Database: "a", Allow: []netip.Prefix{network("::ffff:10.0.0.0/104")}}),
		"no network":            with(Entry{Database: "a", Allow: []netip.Prefix{{}}}),
		"no address":            with(Entry{Database: "a", Welcome: []netip.Addr{{}}}),
		"address with a zone":   with(Entry{Database: "a", Welcome: []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}}),
		"socket somewhere":      with(Entry{Database: "a", Elsewhere: Socket{"forward", 1}}),
		"socket on two lines":   with(Entry{Database: "a", Elsewhere: Socket{"/a\nuser=b", 1}}),
		"socket of no number":   with(Entry{Database: "a", Elsewhere: Socket{"/a", 0}}),
		"login with a space":    with(Entry{Database: "a", Logins: []Login{{"a b", 1}}}),
		"login with a quote":    with(Entry{Database: "a", Logins: []Login{{`a"b`, 1}}}),
		"auth user as customer": with(Entry{Database: "a", Logins: []Login{{"pgherd_pooler", 1}}}),
		"admin as customer":     with(Entry{Database: "a", Logins: []Login{{"pgherd_pooler_admin", 1}}}),
		"negative limit":        with(Entry{Database: "a", Logins: []Login{{"a", -1}}}),
		"login twice":           with(Entry{Database: "a", Logins: []Login{{"a", 1}, {"a", 2}}}),
		"database twice":        {Settings: testSettings(), Entries: []Entry{{Database: "a"}, {Database: "a"}}},
		"no TLS certificate":    set(func(s *Settings) { s.TLSCertFile = "" }),
		"line break in path":    set(func(s *Settings) { s.LogFile = "/a\nauth_type = trust" }),
		"space after path":      set(func(s *Settings) { s.Dir = "/a " }),
		"no admin password":     set(func(s *Settings) { s.AdminPassword = "" }),
		"admin list":            set(func(s *Settings) { s.AdminUser = "a,b" }),
		"no client limit":       set(func(s *Settings) { s.MaxClients = 0 }),
		"no large packets":      set(func(s *Settings) { s.MaxPacket = LeastPacket - 1 }),
		"larger packets":        set(func(s *Settings) { s.MaxPacket = MostPacket + 1 }),
	}
	for name, state := range cases {
		if _, err := Render(state); !errors.Is(err, ErrUnwritable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeywordsAreOnlyNames holds that databases and logins with the names of HBA keywords open nothing.
func TestKeywordsAreOnlyNames(t *testing.T) {
	for _, word := range []string{"all", "sameuser", "samerole", "samegroup", "replication"} {
		files := check.Must(Render(State{Settings: testSettings(), Entries: []Entry{{Database: word, Logins: []Login{{word, 1}}}}}))(t)
		rules := parseRules(t, contentOf(t, files, "hba-"))
		from := netip.MustParseAddr("10.1.1.1")
		if admits(rules, "other", word, from) || admits(rules, word, "other", from) {
			t.Errorf("%s is a keyword", word)
		}
		if !admits(rules, word, word, from) {
			t.Errorf("%s does not admit itself", word)
		}
	}
}

// TestRenderedFilesSayTheState reads the files as PgBouncer does and finds the state again, whatever the order of its parts.
func TestRenderedFilesSayTheState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := State{Settings: testSettings(), Entries: drawEntries(rt)}
		files, err := Render(s)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := Render(State{Settings: s.Settings, Entries: rapid.Permutation(s.Entries).Draw(rt, "order")})
		if err != nil || again.Mark != files.Mark {
			rt.Fatalf("order changes the files: %v", err)
		}
		sections := parseIni(t, contentOf(t, files, "databases-")+contentOf(t, files, "users-"))
		rules := parseRules(t, contentOf(t, files, "hba-"))
		holds(rt, s, sections, rules)
	})
}

func drawEntries(rt *rapid.T) []Entry {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9-]{1,20}[a-z0-9]`), 0, 6, rapid.ID).Draw(rt, "names")
	nets := []netip.Prefix{network("10.0.0.0/8"), network("192.0.2.7/32"), network("2001:db8::/32")}
	entries := make([]Entry, 0, len(names))
	for i, n := range names {
		entries = append(entries, Entry{
			Database: n, ConnectionCap: rapid.IntRange(0, 200).Draw(rt, "cap"),
			Allow:  rapid.SliceOfDistinct(rapid.SampledFrom(nets), func(p netip.Prefix) netip.Prefix { return p }).Draw(rt, "allow"),
			Logins: []Login{{n, rapid.IntRange(0, 50).Draw(rt, "limit")}, {fmt.Sprintf("pgh_%d_ro", i), 5}},
		})
	}
	return entries
}

func holds(rt *rapid.T, s State, sections map[string][]line, rules []rule) {
	if got, want := len(sections["databases"]), 2*len(s.Entries)+1; got != want {
		rt.Fatalf("%d entries, want %d", got, want)
	}
	for section, lines := range sections {
		if !slices.IsSortedFunc(lines, func(a, b line) int { return strings.Compare(b.key, a.key) }) {
			rt.Fatalf("[%s] is not sorted by name descending", section)
		}
	}
	inside, outside := netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("203.0.113.1")
	for _, e := range s.Entries {
		for _, name := range EntryNames(e.Database) {
			for _, from := range []netip.Addr{inside, outside} {
				want := len(e.Allow) == 0 || slices.ContainsFunc(e.Allow, func(p netip.Prefix) bool { return p.Contains(from) })
				if got := admits(rules, name, e.Logins[0].Name, from); got != want {
					rt.Fatalf("%s from %s: admitted %t, want %t", name, from, got, want)
				}
			}
			for _, other := range s.Entries {
				if other.Database != e.Database && admits(rules, name, other.Logins[0].Name, inside) {
					rt.Fatalf("%s admits %s", name, other.Logins[0].Name)
				}
			}
		}
	}
}

func TestPrintedSettingsHideThePasswords(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, State{Settings: testSettings()}); strings.Contains(text, "secret") {
			t.Errorf("%s shows %s", format, text)
		}
	}
}
