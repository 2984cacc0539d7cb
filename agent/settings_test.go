package agent_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/versions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// standard are the timeouts of a profile.
var standard = &command.Timeouts{StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000}

func (w wanted) configure(generation int64, c command.Configure) protocol.Command {
	c.DatabaseID, c.Generation = w.databaseID(), generation
	return told("", 0, c)
}

// settings asks what is in force.
func (s *stack) settings(t testing.TB, w wanted) command.SettingsInForce {
	t.Helper()
	status, text, err := s.request(http.MethodGet, "/v1/databases/"+w.id+"/settings", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s, %v", status, text, err)
	}
	return as[command.SettingsInForce](t, text)
}

// shows checks a parameter in a new session of a login through both entries.
func (s *stack) shows(t testing.TB, l loginOf, parameter, want string) {
	t.Helper()
	for _, entry := range []string{l.name, l.name + ".transaction"} {
		db := s.pooled(t, entry, l.username, l.password)
		if got := shown(t, db, parameter); got != want {
			t.Errorf("%s of %s at %s: %s, want %s", parameter, l.username, entry, got, want)
		}
		_ = db.Close()
	}
}

func shown(t testing.TB, db interface{ QueryRow(string, ...any) *sql.Row }, parameter string) (value string) {
	t.Helper()
	check.NoError(t, db.QueryRow("SHOW "+parameter).Scan(&value))
	return value
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
	s, w, own := roleStack(t, role.Custom)
	direct := s.direct(t, w.name, own.username, own.password)
	check.Must(direct.Exec("ALTER ROLE CURRENT_USER SET statement_timeout = '77s'"))(t)
	check.NoError(t, direct.Close())
	owner := w.present(database.OwnerLogin)
	held := check.Must(s.pooledOwner(t, w).BeginTx(t.Context(), nil))(t)
	lent := check.Must(s.pooled(t, w.name+".transaction", owner.username, owner.password).BeginTx(t.Context(), nil))(t)
	idle := check.Must(s.pooledOwner(t, w).Conn(t.Context()))(t)
	waiting := check.Must(s.pooled(t, w.name+".transaction", owner.username, owner.password).Conn(t.Context()))(t)
	for _, in := range []*sql.Tx{held, lent} {
		check.Must(in.Exec("SELECT 1"))(t)
	}
	for _, conn := range []*sql.Conn{idle, waiting} {
		check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
	}
	for _, l := range w.model.Logins() {
		s.shows(t, w.present(l), "statement_timeout", "0")
	}

	oid := as[command.Configured](t, s.done(t, w.configure(1, command.Configure{Timeouts: standard}))).DatabaseOID
	if want := s.one(t, "SELECT oid FROM pg_database WHERE datname = $1", w.name); fmt.Sprint(oid) != want {
		t.Errorf("OID %d, want %s", oid, want)
	}
	endsSoon(t, "an idle session", idle)
	for _, l := range w.model.Logins() {
		s.shows(t, w.present(l), "statement_timeout", "1min")
	}
	s.shows(t, owner, "lock_timeout", "10s")
	s.shows(t, owner, "idle_in_transaction_session_timeout", "30s")
	s.shows(t, own, "statement_timeout", "77s")
	for _, in := range []*sql.Tx{held, lent} {
		if got := shown(t, in, "statement_timeout"); got != "0" {
			t.Errorf("in a transaction that runs: %s", got)
		}
	}
	check.Eventually(t, "others than the two are pending", func() bool { return s.settings(t, w).Pending == 2 })
	check.NoError(t, held.Commit())
	check.NoError(t, lent.Commit())
	var value string
	check.NoError(t, waiting.QueryRowContext(t.Context(), "SHOW statement_timeout").Scan(&value), "who holds no session")
	if value != "1min" {
		t.Errorf("who holds no session has %s", value)
	}
	check.Eventually(t, "sessions are pending", func() bool { return s.settings(t, w).Pending == 0 })

	s.done(t, w.configure(2, command.Configure{}))
	s.shows(t, owner, "statement_timeout", "0")
	s.shows(t, own, "statement_timeout", "77s")
}

func TestQueryOverTheLimitIsEnded(t *testing.T) {
	s, w := databaseStack(t)
	short := &command.Timeouts{StatementMs: 200, LockMs: 100, IdleInTransactionMs: 300}
	s.done(t, w.configure(1, command.Configure{Timeouts: short}))
	for _, entry := range []string{w.name, w.name + ".transaction"} {
		db := s.pooled(t, entry, w.name, w.passwords[database.OwnerLogin])
		_, err := db.Exec("SELECT pg_sleep(20)")
		if sqlState(err) != "57014" {
			t.Errorf("%s: %v", entry, err)
		}
	}
	db := s.pooledOwner(t, w)
	check.Must(db.Exec("SET statement_timeout = 0; SELECT pg_sleep(0.3)"))(t) // the owner's own session
	check.Must(db.Exec("ALTER ROLE CURRENT_USER SET statement_timeout = 0"))(t)
	refused(t, "the owner lifts the database's", db, fmt.Sprintf("ALTER DATABASE %q RESET statement_timeout", w.name))
	s.shows(t, w.present(database.RuntimeLogin), "statement_timeout", "200ms")
	s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "200ms")
}

func TestReadOnlyByDefault(t *testing.T) {
	t.Parallel()
	s, w := databaseStack(t)
	owner := w.present(database.OwnerLogin)
	maker := s.owner(t, w)
	check.Must(maker.Exec("CREATE TABLE big (id int); CREATE TABLE bigger (id int)"))(t)
	check.NoError(t, maker.Close()) // a direct session takes longer to be ended
	conns := map[string]*sql.Conn{}
	for _, entry := range []string{w.name, w.name + ".transaction"} {
		conns[entry] = check.Must(s.pooled(t, entry, owner.username, owner.password).Conn(t.Context()))(t)
		check.Must(conns[entry].ExecContext(t.Context(), "INSERT INTO big VALUES (1)"))(t)
	}
	s.done(t, w.configure(1, command.Configure{ReadOnly: true}))
	endsSoon(t, "an idle session", conns[w.name])
	s.held(t, w, &conns, "on")
	s.shows(t, w.present(database.RuntimeLogin), "default_transaction_read_only", "on")

	for _, entry := range []string{w.name, w.name + ".transaction"} {
		db := s.pooled(t, entry, owner.username, owner.password)
		if _, err := db.Exec("INSERT INTO big VALUES (1)"); sqlState(err) != "25006" {
			t.Errorf("%s: a write by default: %v", entry, err)
		}
		check.Must(db.Exec("BEGIN READ WRITE; TRUNCATE big; COMMIT"))(t)
	}
	for _, statement := range []string{
		"BEGIN READ WRITE; ALTER ROLE CURRENT_USER SET default_transaction_read_only = off; COMMIT", "INSERT INTO big VALUES (1)",
		"ALTER ROLE CURRENT_USER RESET default_transaction_read_only",
	} {
		db := s.owner(t, w)
		check.Must(db.Exec(statement))(t)
		check.NoError(t, db.Close())
	}
	session := check.Must(s.pooledOwner(t, w).Conn(t.Context()))(t)
	for _, statement := range []string{"SET default_transaction_read_only = off", "DROP TABLE bigger", "VACUUM FULL big"} {
		check.Must(session.ExecContext(t.Context(), statement))(t)
	}

	s.done(t, w.configure(2, command.Configure{}))
	endsSoon(t, "an idle session", session)
	s.held(t, w, &conns, "off")
	s.shows(t, w.present(database.RuntimeLogin), "default_transaction_read_only", "off")
}

// held looks at what an idle client of the second entry has, which stays where PgBouncer does not remember for it what it began
// with. Otherwise it is ended, and comes again.
func (s *stack) held(t testing.TB, w wanted, conns *map[string]*sql.Conn, want string) {
	t.Helper()
	entry := w.name + ".transaction"
	s.noOlderSessions(t, w)
	read := func() (value string, err error) {
		err = (*conns)[entry].QueryRowContext(t.Context(), "SHOW default_transaction_read_only").Scan(&value)
		return value, err
	}
	value, err := read()
	if remembers := s.poolerRemembers(t); (err != nil) != remembers {
		t.Errorf("an idle client of a PgBouncer that remembers the setting (%t): %v", remembers, err)
	}
	if err != nil {
		owner := w.present(database.OwnerLogin)
		(*conns)[entry] = check.Must(s.pooled(t, entry, owner.username, owner.password).Conn(t.Context()))(t)
		value = check.Must(read())(t)
	}
	if value != want {
		t.Errorf("a client of the second entry has %s, want %s", value, want)
	}
}

// noOlderSessions waits until no session is older than the settings.
func (s *stack) noOlderSessions(t testing.TB, w wanted) {
	t.Helper()
	check.Eventually(t, "there are still older sessions", func() bool {
		return s.one(t, "SELECT count(*) FROM ledger.database WHERE id = $1 AND settings_since IS NULL", w.id) == "1"
	})
}

// poolerRemembers reports whether PgBouncer is of a version that remembers default_transaction_read_only for its clients.
func (s *stack) poolerRemembers(t testing.TB) bool {
	t.Helper()
	var version string
	check.NoError(t, s.console(t).QueryRow("SHOW VERSION").Scan(&version))
	return check.Must(versions.Parse(version))(t).Number.AtLeast(versions.Number{1, 26})
}

// What customers set for themselves is kept, and told: for roles of their own, and for the owner where the service has set it
// since, as long as the service wants nothing else.
func TestCustomersOwnSettingsAreKept(t *testing.T) {
	s, w, own := roleStack(t, role.Custom)
	set := func(l loginOf, statement string) {
		check.Must(s.direct(t, w.name, l.username, l.password).Exec(statement))(t)
	}
	owner, runtime := w.present(database.OwnerLogin), w.present(database.RuntimeLogin)
	set(own, "ALTER ROLE CURRENT_USER SET statement_timeout = '77s'")
	set(own, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '2min'", w.name))
	set(own, "ALTER ROLE CURRENT_USER SET work_mem = '5MB'")
	set(runtime, "ALTER ROLE CURRENT_USER SET default_transaction_read_only = off")
	set(owner, "ALTER ROLE CURRENT_USER SET lock_timeout = '1h'")
	wants := func(what string, timeouts command.Timeouts, overrides ...command.RoleOverride) {
		t.Helper()
		in := s.settings(t, w)
		got := command.Timeouts{StatementMs: in.StatementMs, LockMs: in.LockMs, IdleInTransactionMs: in.IdleInTransactionMs}
		if got != timeouts {
			t.Errorf("%s: the owner has %+v", what, got)
		}
		if fmt.Sprint(in.RoleOverrides) != fmt.Sprint(overrides) {
			t.Errorf("%s: overrides %v", what, in.RoleOverrides)
		}
	}
	always := []command.RoleOverride{
		{Role: own.username, Setting: "statement_timeout", Value: "2min"},
		{Role: runtime.username, Setting: "default_transaction_read_only", Value: "off"},
	}
	of := func(setting, value string) command.RoleOverride {
		return command.RoleOverride{Role: owner.username, Setting: setting, Value: value}
	}
	hour := int64(time.Hour / time.Millisecond)
	wants("before", command.Timeouts{LockMs: hour}, append([]command.RoleOverride{of("lock_timeout", "1h")}, always...)...)
	s.done(t, w.configure(1, command.Configure{Timeouts: standard}))
	wants("set", *standard, always...)
	set(owner, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '5min'", w.name))
	minutes := *standard
	minutes.StatementMs = 300_000
	lifted := append([]command.RoleOverride{of("statement_timeout", "5min")}, always...)
	wants("lifted by the owner", minutes, lifted...)
	s.done(t, w.configure(2, command.Configure{Timeouts: standard, ReadOnly: true}))
	wants("over the quota", minutes, lifted...)
	s.done(t, w.configure(3, command.Configure{}))
	wants("taken back", command.Timeouts{StatementMs: 300_000, LockMs: hour}, append([]command.RoleOverride{
		of("lock_timeout", "1h"), of("statement_timeout", "5min"),
	}, always...)...)
	s.done(t, w.configure(4, command.Configure{Timeouts: standard}))
	wants("set again", *standard, always...)
}

// A customer's transaction that holds what the service changes is ended; one that only goes on is not, and is in nobody's way.
func TestSettingsPushThroughACustomersTransaction(t *testing.T) {
	s, w := databaseStack(t)
	bystander := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(bystander.Exec("SELECT 1"))(t)
	for generation, first := range []bool{true, false} { // the first setting of a role is a row of its own
		tx := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = 0", w.name)))(t)
		timeouts := *standard
		timeouts.StatementMs += int64(generation)
		s.done(t, w.configure(int64(generation)+1, command.Configure{Timeouts: &timeouts}))
		if tx.Commit() == nil {
			t.Errorf("the transaction in the way is committed (first: %t)", first)
		}
	}
	check.NoError(t, bystander.Commit(), "who was in nobody's way")
	if got := s.settings(t, w).StatementMs; got != standard.StatementMs+1 {
		t.Errorf("statement timeout %d", got)
	}
}

// The first setting of a role that a customer commits while the service waits for it is a row that the service did not see.
func TestSettingsBesideACustomersFirst(t *testing.T) {
	s, w := databaseStack(t)
	committed := false
	for generation := int64(1); generation < 20 && !committed; generation += 2 {
		tx := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = 0", w.name)))(t)
		answered := make(chan string, 1)
		go func() {
			timeouts := *standard
			timeouts.StatementMs += generation // the owner's is left alone otherwise
			_, reason, _ := s.send(w.configure(generation, command.Configure{Timeouts: &timeouts}))
			answered <- reason
		}()
		check.Eventually(t, "the agent does not wait", func() bool {
			return s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
		})
		committed = tx.Commit() == nil // otherwise it was ended
		if reason := <-answered; reason != "" {
			t.Fatal(reason)
		}
		check.Must(s.owner(t, w).Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q RESET ALL", w.name)))(t)
	}
	if !committed {
		t.Error("the customer never came in time")
	}
}

// A direct session, which PgBouncer knows nothing of, is ended by the agent.
func TestIdleDirectSessionIsEnded(t *testing.T) {
	t.Parallel()
	s, w := databaseStack(t)
	conn := check.Must(s.owner(t, w).Conn(t.Context()))(t)
	check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
	s.done(t, w.configure(1, command.Configure{Timeouts: standard}))
	check.Eventually(t, "the session goes on", func() bool { return s.settings(t, w).Pending == 0 })
	if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err == nil {
		t.Error("it is told of no session, and there is one")
	}
}
