package settings_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// settings asks what is in force.
func settings(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) command.SettingsInForce {
	t.Helper()
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/settings", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s, %v", status, text, err)
	}
	return agenttest.As[command.SettingsInForce](t, text)
}

// endsSoon waits until a connection is dead. Each look is a statement of its own, so it must be in no transaction.
func endsSoon(t testing.TB, what string, conn *sql.Conn) {
	t.Helper()
	check.Eventually(t, what+" goes on", func() bool {
		_, err := conn.ExecContext(t.Context(), "SELECT 1")
		time.Sleep(50 * time.Millisecond)
		return err != nil
	})
}

func TestTimeoutsThroughBothEntries(t *testing.T) {
	s, w, own := agenttest.RoleStack(t, role.Custom)
	direct := s.Direct(t, w.Name, own.Username, own.Password)
	check.Must(direct.Exec("ALTER ROLE CURRENT_USER SET statement_timeout = '77s'"))(t)
	check.NoError(t, direct.Close())
	owner := w.Present(database.OwnerLogin)
	held := check.Must(s.PooledOwner(t, w).BeginTx(t.Context(), nil))(t)
	lent := check.Must(s.Pooled(t, w.Name+".transaction", owner.Username, owner.Password).BeginTx(t.Context(), nil))(t)
	idle := check.Must(s.PooledOwner(t, w).Conn(t.Context()))(t)
	waiting := check.Must(s.Pooled(t, w.Name+".transaction", owner.Username, owner.Password).Conn(t.Context()))(t)
	for _, in := range []*sql.Tx{held, lent} {
		check.Must(in.Exec("SELECT 1"))(t)
	}
	for _, conn := range []*sql.Conn{idle, waiting} {
		check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
	}
	for _, l := range w.Model.Logins() {
		s.Shows(t, w.Present(l), "statement_timeout", "0")
	}

	set := w.Configure(1, command.Configure{Timeouts: agenttest.Standard})
	oid := agenttest.As[command.Configured](t, s.Done(t, set)).DatabaseOID
	if want := s.One(t, "SELECT oid FROM pg_database WHERE datname = $1", w.Name); fmt.Sprint(oid) != want {
		t.Errorf("OID %d, want %s", oid, want)
	}
	endsSoon(t, "an idle session", idle)
	for _, l := range w.Model.Logins() {
		s.Shows(t, w.Present(l), "statement_timeout", "1min")
	}
	s.Shows(t, owner, "lock_timeout", "10s")
	s.Shows(t, owner, "idle_in_transaction_session_timeout", "30s")
	s.Shows(t, own, "statement_timeout", "77s")
	for _, in := range []*sql.Tx{held, lent} {
		if got := agenttest.Shown(t, in, "statement_timeout"); got != "0" {
			t.Errorf("in a transaction that runs: %s", got)
		}
	}
	check.Eventually(t, "others than the two are pending", func() bool { return settings(t, s, w).Pending == 2 })
	check.NoError(t, held.Commit())
	check.NoError(t, lent.Commit())
	var value string
	check.NoError(t, waiting.QueryRowContext(t.Context(), "SHOW statement_timeout").Scan(&value), "who holds no session")
	if value != "1min" {
		t.Errorf("who holds no session has %s", value)
	}
	check.Eventually(t, "sessions are pending", func() bool { return settings(t, s, w).Pending == 0 })

	s.Done(t, w.Configure(2, command.Configure{}))
	s.Shows(t, owner, "statement_timeout", "0")
	s.Shows(t, own, "statement_timeout", "77s")
}

func TestQueryOverTheLimitIsEnded(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	short := &command.Timeouts{StatementMs: 200, LockMs: 100, IdleInTransactionMs: 300}
	s.Done(t, w.Configure(1, command.Configure{Timeouts: short}))
	for _, entry := range []string{w.Name, w.Name + ".transaction"} {
		db := s.Pooled(t, entry, w.Name, w.Passwords[database.OwnerLogin])
		_, err := db.Exec("SELECT pg_sleep(20)")
		if agenttest.SQLState(err) != "57014" {
			t.Errorf("%s: %v", entry, err)
		}
	}
	db := s.PooledOwner(t, w)
	check.Must(db.Exec("SET statement_timeout = 0; SELECT pg_sleep(0.3)"))(t) // the owner's own session
	check.Must(db.Exec("ALTER ROLE CURRENT_USER SET statement_timeout = 0"))(t)
	agenttest.Refused(t, "the owner lifts the database's", db, fmt.Sprintf("ALTER DATABASE %q RESET statement_timeout", w.Name))
	s.Shows(t, w.Present(database.RuntimeLogin), "statement_timeout", "200ms")
	s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "200ms")
}

func TestReadOnlyByDefault(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	owner := w.Present(database.OwnerLogin)
	maker := s.Owner(t, w)
	check.Must(maker.Exec("CREATE TABLE big (id int); CREATE TABLE bigger (id int)"))(t)
	check.NoError(t, maker.Close()) // a direct session takes longer to be ended
	conns := map[string]*sql.Conn{}
	for _, entry := range []string{w.Name, w.Name + ".transaction"} {
		conns[entry] = check.Must(s.Pooled(t, entry, owner.Username, owner.Password).Conn(t.Context()))(t)
		check.Must(conns[entry].ExecContext(t.Context(), "INSERT INTO big VALUES (1)"))(t)
	}
	s.Done(t, w.Configure(1, command.Configure{ReadOnly: true}))
	endsSoon(t, "an idle session", conns[w.Name])
	held(t, s, w, &conns, "on")
	s.Shows(t, w.Present(database.RuntimeLogin), "default_transaction_read_only", "on")

	for _, entry := range []string{w.Name, w.Name + ".transaction"} {
		db := s.Pooled(t, entry, owner.Username, owner.Password)
		if _, err := db.Exec("INSERT INTO big VALUES (1)"); agenttest.SQLState(err) != "25006" {
			t.Errorf("%s: a write by default: %v", entry, err)
		}
		check.Must(db.Exec("BEGIN READ WRITE; TRUNCATE big; COMMIT"))(t)
	}
	for _, statement := range []string{
		"BEGIN READ WRITE; ALTER ROLE CURRENT_USER SET default_transaction_read_only = off; COMMIT", "INSERT INTO big VALUES (1)",
		"ALTER ROLE CURRENT_USER RESET default_transaction_read_only",
	} {
		db := s.Owner(t, w)
		check.Must(db.Exec(statement))(t)
		check.NoError(t, db.Close())
	}
	session := check.Must(s.PooledOwner(t, w).Conn(t.Context()))(t)
	for _, statement := range []string{"SET default_transaction_read_only = off", "DROP TABLE bigger", "VACUUM FULL big"} {
		check.Must(session.ExecContext(t.Context(), statement))(t)
	}

	s.Done(t, w.Configure(2, command.Configure{}))
	endsSoon(t, "an idle session", session)
	held(t, s, w, &conns, "off")
	s.Shows(t, w.Present(database.RuntimeLogin), "default_transaction_read_only", "off")
}

// held looks at what an idle client of the second entry has, which stays where PgBouncer does not remember for it what it began
// with. Otherwise it is ended, and comes again.
func held(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, conns *map[string]*sql.Conn, want string) {
	t.Helper()
	entry := w.Name + ".transaction"
	s.NoOlderSessions(t, w)
	read := func() (value string, err error) {
		err = (*conns)[entry].QueryRowContext(t.Context(), "SHOW default_transaction_read_only").Scan(&value)
		return value, err
	}
	value, err := read()
	if remembers := poolerRemembers(t, s); (err != nil) != remembers {
		t.Errorf("an idle client of a PgBouncer that remembers the setting (%t): %v", remembers, err)
	}
	if err != nil {
		owner := w.Present(database.OwnerLogin)
		(*conns)[entry] = check.Must(s.Pooled(t, entry, owner.Username, owner.Password).Conn(t.Context()))(t)
		value = check.Must(read())(t)
	}
	if value != want {
		t.Errorf("a client of the second entry has %s, want %s", value, want)
	}
}

// poolerRemembers reports whether PgBouncer is of a version that remembers default_transaction_read_only for its clients.
func poolerRemembers(t testing.TB, s *agenttest.Stack) bool {
	t.Helper()
	var version string
	check.NoError(t, s.Console(t).QueryRow("SHOW VERSION").Scan(&version))
	return check.Must(floors.Parse(version))(t).Number.AtLeast(floors.Number{1, 26})
}

// What customers set for themselves is kept, and told: for roles of their own, and for the owner where the service has set it
// since, as long as the service wants nothing else.
func TestCustomersOwnSettingsAreKept(t *testing.T) {
	s, w, own := agenttest.RoleStack(t, role.Custom)
	set := func(l agenttest.LoginOf, statement string) {
		check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec(statement))(t)
	}
	owner, runtime := w.Present(database.OwnerLogin), w.Present(database.RuntimeLogin)
	set(own, "ALTER ROLE CURRENT_USER SET statement_timeout = '77s'")
	set(own, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '2min'", w.Name))
	set(own, "ALTER ROLE CURRENT_USER SET work_mem = '5MB'")
	set(runtime, "ALTER ROLE CURRENT_USER SET default_transaction_read_only = off")
	set(owner, "ALTER ROLE CURRENT_USER SET lock_timeout = '1h'")
	wants := func(what string, timeouts command.Timeouts, overrides ...command.RoleOverride) {
		t.Helper()
		in := settings(t, s, w)
		got := command.Timeouts{StatementMs: in.StatementMs, LockMs: in.LockMs, IdleInTransactionMs: in.IdleInTransactionMs}
		if got != timeouts {
			t.Errorf("%s: the owner has %+v", what, got)
		}
		if fmt.Sprint(in.RoleOverrides) != fmt.Sprint(overrides) {
			t.Errorf("%s: overrides %v", what, in.RoleOverrides)
		}
	}
	always := []command.RoleOverride{
		{Role: own.Username, Setting: "statement_timeout", Value: "2min"},
		{Role: runtime.Username, Setting: "default_transaction_read_only", Value: "off"},
	}
	of := func(setting, value string) command.RoleOverride {
		return command.RoleOverride{Role: owner.Username, Setting: setting, Value: value}
	}
	hour := int64(time.Hour / time.Millisecond)
	wants("before", command.Timeouts{LockMs: hour}, append([]command.RoleOverride{of("lock_timeout", "1h")}, always...)...)
	s.Done(t, w.Configure(1, command.Configure{Timeouts: agenttest.Standard}))
	wants("set", *agenttest.Standard, always...)
	set(owner, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '5min'", w.Name))
	minutes := *agenttest.Standard
	minutes.StatementMs = 300_000
	lifted := append([]command.RoleOverride{of("statement_timeout", "5min")}, always...)
	wants("lifted by the owner", minutes, lifted...)
	s.Done(t, w.Configure(2, command.Configure{Timeouts: agenttest.Standard, ReadOnly: true}))
	wants("over the quota", minutes, lifted...)
	s.Done(t, w.Configure(3, command.Configure{}))
	wants("taken back", command.Timeouts{StatementMs: 300_000, LockMs: hour}, append([]command.RoleOverride{
		of("lock_timeout", "1h"), of("statement_timeout", "5min"),
	}, always...)...)
	s.Done(t, w.Configure(4, command.Configure{Timeouts: agenttest.Standard}))
	wants("set again", *agenttest.Standard, always...)
}

// A customer's transaction that holds what the service changes is ended; one that only goes on is not, and is in nobody's way.
func TestSettingsPushThroughACustomersTransaction(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	bystander := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(bystander.Exec("SELECT 1"))(t)
	for generation, first := range []bool{true, false} { // the first setting of a role is a row of its own
		tx := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = 0", w.Name)))(t)
		timeouts := *agenttest.Standard
		timeouts.StatementMs += int64(generation)
		s.Done(t, w.Configure(int64(generation)+1, command.Configure{Timeouts: &timeouts}))
		if tx.Commit() == nil {
			t.Errorf("the transaction in the way is committed (first: %t)", first)
		}
	}
	check.NoError(t, bystander.Commit(), "who was in nobody's way")
	if got := settings(t, s, w).StatementMs; got != agenttest.Standard.StatementMs+1 {
		t.Errorf("statement timeout %d", got)
	}
}

// The first setting of a role that a customer commits while the service waits for it is a row that the service did not see.
func TestSettingsBesideACustomersFirst(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	committed := false
	for generation := int64(1); generation < 20 && !committed; generation += 2 {
		tx := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = 0", w.Name)))(t)
		answered := make(chan string, 1)
		go func() {
			timeouts := *agenttest.Standard
			timeouts.StatementMs += generation // the owner's is left alone otherwise
			_, reason, _ := s.Send(w.Configure(generation, command.Configure{Timeouts: &timeouts}))
			answered <- reason
		}()
		check.Eventually(t, "the agent does not wait", func() bool {
			return s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
		})
		committed = tx.Commit() == nil // otherwise it was ended
		if reason := <-answered; reason != "" {
			t.Fatal(reason)
		}
		check.Must(s.Owner(t, w).Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q RESET ALL", w.Name)))(t)
	}
	if !committed {
		t.Error("the customer never came in time")
	}
}

// A direct session, which PgBouncer knows nothing of, is ended by the agent.
func TestIdleDirectSessionIsEnded(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	conn := check.Must(s.Owner(t, w).Conn(t.Context()))(t)
	check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
	s.Done(t, w.Configure(1, command.Configure{Timeouts: agenttest.Standard}))
	check.Eventually(t, "the session goes on", func() bool { return settings(t, s, w).Pending == 0 })
	if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err == nil {
		t.Error("it is told of no session, and there is one")
	}
}
