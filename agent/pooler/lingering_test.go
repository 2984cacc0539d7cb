package pooler

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestWhenALingeringEntryMayLeave(t *testing.T) {
	for what, c := range map[string]struct {
		atFirst map[string]string // who may be logging in when it begins to linger, and where
		later   []map[string]string
		want    bool
	}{
		"nobody":                         {nil, []map[string]string{{}}, true},
		"nobody was looked for again":    {nil, nil, true},
		"one at it":                      {map[string]string{"1": "shop"}, []map[string]string{{"1": "shop"}}, false},
		"one at its second entry":        {map[string]string{"1": "shop.transaction"}, nil, false},
		"one at it who is gone":          {map[string]string{"1": "shop"}, []map[string]string{{"1": "shop"}, {}}, true},
		"one not looked for again":       {map[string]string{"1": "shop"}, nil, false},
		"one at another":                 {map[string]string{"1": "blog"}, []map[string]string{{"1": "blog"}}, true},
		"one at a name that is longer":   {map[string]string{"1": "shop-b"}, nil, true},
		"one whose verifier is asked":    {map[string]string{"1": ""}, []map[string]string{{"1": ""}}, false},
		"and who was at it":              {map[string]string{"1": ""}, []map[string]string{{"1": "shop"}}, false},
		"and who was at another":         {map[string]string{"1": ""}, []map[string]string{{"1": "blog"}}, true},
		"one who comes later":            {map[string]string{"1": "shop"}, []map[string]string{{"2": "", "3": "shop"}}, true},
		"one of two":                     {map[string]string{"1": "shop", "2": ""}, []map[string]string{{"2": "shop"}}, false},
		"one who was seen to be gone":    {map[string]string{"1": "shop"}, []map[string]string{{}, {"1": "shop"}}, true},
		"one who waits for its verifier": {map[string]string{"1": ""}, []map[string]string{{"1": ""}, {"1": "shop"}}, false},
	} {
		v := vigil{}
		if v.over("shop") {
			t.Errorf("%s: it may leave before anybody was looked for", what)
		}
		v.begin("shop", c.atFirst)
		v.begin("other", map[string]string{"9": "other"})
		for _, look := range c.later {
			v.narrow(look)
		}
		if got := v.over("shop"); got != c.want {
			t.Errorf("%s: it may leave: %t", what, got)
		}
	}
}

func TestWhatLingersIsWhatTheFilesHaveAndTheStateHasNot(t *testing.T) {
	s := State{Settings: testSettings(), Entries: []Entry{{Database: "shop"}, {Database: "shop-b"}}}
	lines := map[string]string{
		"shop": "", "shop.transaction": "", "shop-b": "", "blog": "", "blog.transaction": "", "a.transaction": "", "pgherd": "",
		"shop-b.transaction": "", "NOT ours": "", "x.y": "", ".transaction": "",
	}
	if got := goneFrom(s, lines); !slices.Equal(got, []string{"a", "blog"}) {
		t.Errorf("%v", got)
	}
	s.Lingering = []string{"blog"}
	text := contentOf(t, check.Must(Render(s))(t), "databases-")
	at := " = host='127.0.0.1' port=5432 dbname='blog' pool_mode="
	for _, line := range []string{
		"\nblog" + at + "session pool_size=1 max_db_connections=1 auth_dbname='pgherd_gone'\n",
		"\nblog.transaction" + at + "transaction pool_size=1 max_db_connections=1 auth_dbname='pgherd_gone'\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s has no %s", text, line)
		}
	}
	if rules := contentOf(t, check.Must(Render(s))(t), "hba-"); strings.Contains(rules, "blog") {
		t.Errorf("somebody may log in: %s", rules)
	}
	for _, wrong := range []string{"shop", "pgherd", "pgherd_gone", "a b"} {
		s.Lingering = []string{wrong}
		if _, err := Render(s); err == nil {
			t.Errorf("%s lingers", wrong)
		}
	}
}

// held is a wire on which the last message of a log-in with a password waits.
type held struct {
	net.Conn
	parked, goOn chan struct{}
}

func (h held) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("c=biws,")) {
		close(h.parked)
		<-h.goOn
	}
	return h.Conn.Write(b)
}

// parkLast parks a log-in as late as a client can: PgBouncer has asked for the proof of the password, and the client has it. What
// is returned has it go on, and says where it came in, and as whom; empty if it did not.
func parkLast(t *testing.T, s *stack, entry, login string) (goOn func() string) {
	t.Helper()
	wire := held{parked: make(chan struct{}), goOn: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), check.Patience)
	t.Cleanup(cancel)
	came := make(chan string, 1)
	go func() {
		where := ""
		in, err := connect(ctx, pq.Config{
			Host: s.settings.SocketDir, Port: uint16(s.settings.ListenPort), Database: entry, User: login, Password: login + "-pw",
		}, &timedWire{login: ctx, secure: func(_ context.Context, conn net.Conn) (net.Conn, error) {
			wire.Conn = conn
			return wire, nil
		}})
		if err == nil {
			_ = in.each(ctx, "SELECT current_user || ' at ' || current_database() AS place", func(r row) error {
				where = r.text("place")
				return nil
			})
			in.close()
		}
		came <- where
	}()
	<-wire.parked
	return func() string { close(wire.goOn); return <-came }
}

// only is the default state with some of its databases.
func (s *stack) only(databases ...string) State {
	state := s.defaultState()
	state.Entries = slices.DeleteFunc(state.Entries, func(e Entry) bool { return !slices.Contains(databases, e.Database) })
	return state
}

// lastingly is Apply, after which PgBouncer leaves who is in the middle of a log-in more time than it does otherwise.
func (s *stack) lastingly(t *testing.T, p *Pooler, state State) {
	t.Helper()
	check.NoError(t, p.Apply(t.Context(), state))
	check.NoError(t, p.command(t.Context(), "SET client_login_timeout = 60"))
}

// changes are how one database goes and another comes.
func (s *stack) changes(t *testing.T, apply func(State)) {
	t.Helper()
	apply(s.only())
	apply(s.only("blog"))
	check.NoError(t, s.enter(t, "blog", "blog", ""))
}

// A client that is parked in the middle of its log-in, while its database goes and another comes, does not come in at the other.
func TestNobodyComesInAtTheEntryOfAnother(t *testing.T) {
	s := realStack(t)
	s.lastingly(t, s.pooler, s.only("shop"))
	goOn := parkLast(t, s, "shop", "shop")
	s.changes(t, func(state State) { s.lastingly(t, s.pooler, state) })
	if where := goOn(); where != "shop at shop" {
		t.Errorf("it came in as %q", where)
	}
	check.NoError(t, s.enter(t, "blog", "blog", ""))
}

// What PgBouncer does with such a client where entries leave at once, which is why they linger.
func TestPgBouncerForgetsWhoIsLoggingIn(t *testing.T) {
	s := realStack(t)
	atOnce := func(state State) {
		check.NoError(t, writeFiles(s.settings.Dir, check.Must(Render(state))(t), s.owner))
		check.NoError(t, s.pooler.reload(t.Context()))
	}
	t.Cleanup(func() { // its memory is spoilt
		_ = s.bouncer.Kill()
		check.NoError(t, s.bouncer.Start(context.Background()))
	})
	atOnce(s.only())
	atOnce(s.only("shop"))
	goOn := parkLast(t, s, "shop", "shop")
	s.changes(t, atOnce)
	if where := goOn(); where != "blog at blog" && s.pooler.Ping(t.Context()) == nil {
		t.Errorf("it came in as %q: if PgBouncer no longer forgets it, entries need not linger", where)
	}
}

// An entry that lingers lets nobody begin a log-in. It stays for as long as somebody is in the middle of one that has begun
// before, whoever writes the files meanwhile, and leaves by itself when nobody is.
func TestEntriesLingerUntilNobodyLogsIn(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	goOn := parkLast(t, s, "shop", "shop")
	s.lastingly(t, s.pooler, s.only("blog"))
	for _, entry := range EntryNames("shop") {
		if err := s.enter(t, entry, "shop", ""); err == nil || !strings.Contains(err.Error(), "bouncer config error") {
			t.Errorf("%s: %v", entry, err)
		}
		if err := s.pooler.Prove(ctx, entry, "shop", "shop-pw"); err == nil {
			t.Errorf("%s: somebody came in by the socket", entry)
		}
	}
	s.lastingly(t, s.pooler, s.only("blog"))
	wantLingering(t, s, "shop")
	if found := check.Must(s.pooler.Differences(ctx, s.only("blog")))(t); len(found) > 0 {
		t.Errorf("what lingers is a difference: %+v", found)
	}

	another := New(s.settings, s.owner) // an agent that was started meanwhile
	defer another.Close()
	for range 2 {
		s.lastingly(t, another, s.only("blog"))
		wantLingering(t, s, "shop")
	}
	if where := goOn(); where != "shop at shop" {
		t.Errorf("it came in as %q", where)
	}
	check.Eventually(t, "shop stays", func() bool { return len(entriesShown(t, s)) == 2 })
	wantLingering(t, s)
}

// A PgBouncer that is killed while entries linger has nobody in the middle of a log-in when it is back.
func TestEntriesThatLingerOverACrash(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	parkLast(t, s, "shop", "shop")
	s.lastingly(t, s.pooler, s.only("blog"))
	check.NoError(t, s.bouncer.Kill())
	check.NoError(t, s.bouncer.Start(context.WithoutCancel(ctx)))
	check.Eventually(t, "it does not answer", func() bool { return s.pooler.Ping(ctx) == nil })
	wantLingering(t, s, "shop")
	for range 2 {
		s.lastingly(t, s.pooler, s.only("blog"))
	}
	wantLingering(t, s)
}

// The name of a database that lingers can be given again at once.
func TestADatabaseComesBackWhileItsEntriesLinger(t *testing.T) {
	s := realStack(t)
	goOn := parkLast(t, s, "shop", "shop")
	for range 3 { // each time it lingers anew
		s.lastingly(t, s.pooler, s.only("blog"))
		wantLingering(t, s, "shop")
		s.lastingly(t, s.pooler, s.defaultState())
		check.NoError(t, s.enter(t, "shop", "shop", ""))
	}
	s.lastingly(t, s.pooler, s.only("blog"))
	wantLingering(t, s, "shop")
	if where := goOn(); where != "shop at shop" {
		t.Errorf("it came in as %q", where)
	}
}

// wantLingering compares what lingers in the files, and that PgBouncer has it.
func wantLingering(t *testing.T, s *stack, want ...string) {
	t.Helper()
	files := goneFrom(s.only("blog"), check.Must(storedEntries(s.settings.Dir))(t))
	shown := goneFrom(s.only("blog"), entriesShown(t, s))
	if !slices.Equal(files, want) || !slices.Equal(shown, want) {
		t.Errorf("in the files %v, in PgBouncer %v, want %v", files, shown, want)
	}
}

func entriesShown(t *testing.T, s *stack) map[string]string {
	t.Helper()
	shown := map[string]string{}
	check.NoError(t, s.pooler.Show(t.Context(), "SHOW DATABASES", func(row map[string]string) {
		if row["name"] != adminDatabase && row["name"] != s.settings.MaintenanceDatabase {
			shown[row["name"]] = ""
		}
	}))
	return shown
}
