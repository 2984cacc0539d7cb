package peer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func open(t *testing.T, pg *cluster.Postgres, database string) *sql.DB {
	t.Helper()
	db := check.Must(sql.Open("postgres", pg.URL(database)))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// following is two servers with a database of the same name, a line from the one to the other, and what is followed.
type following struct {
	*source
	from, to *cluster.Postgres
	lines    *Lines
	line     *line
	there    *sql.DB // the database at the source
}

// logical are the settings of a server whose changes can be followed.
var logical = map[string]string{
	"wal_level": "logical", "wal_sender_timeout": "10s", "max_wal_senders": "4", "max_replication_slots": "4",
}

func newFollowing(t *testing.T) *following {
	t.Helper()
	f := &following{source: newSource(t), from: clustertest.New(t, logical), to: clustertest.New(t, nil)}
	for _, pg := range []*cluster.Postgres{f.from, f.to} {
		do(t, open(t, pg, "postgres"), "CREATE DATABASE orders")
		do(t, open(t, pg, "orders"), "CREATE TABLE things (id int PRIMARY KEY, name text)")
	}
	f.there = open(t, f.from, "orders")
	do(t, f.there, "CREATE ROLE move_1 LOGIN REPLICATION PASSWORD 'pw'", "CREATE PUBLICATION move_1 FOR ALL TABLES",
		"CREATE PUBLICATION other FOR ALL TABLES", "SELECT pg_create_logical_replication_slot('move_1', 'pgoutput')",
		"SELECT pg_create_logical_replication_slot('other', 'pgoutput')", "INSERT INTO things VALUES (1, 'one')")
	f.Changes = Changes{
		Of: func(_ context.Context, asked id.OperationID) (Followed, error) {
			if asked != op {
				return Followed{}, command.Refuse(command.ReasonNotFound, "nothing is followed")
			}
			return followed, nil
		},
		Dial: (&sessions.Server{Host: f.from.Host(), Port: f.from.Port()}).Dial,
	}
	f.lines = NewLines(nil, zap.NewNop())
	t.Cleanup(f.lines.Stop)
	check.NoError(t, f.lines.listen(0))
	f.line = f.lines.put(op, line{
		db: "orders", password: "of-the-line", peer: command.Peer{URL: "https://" + f.address, CA: f.ca, Token: token},
	})
	return f
}

func (f *following) conninfo() string {
	f.lines.mu.Lock()
	defer f.lines.mu.Unlock()
	return f.lines.conninfo(op, f.line)
}

// connect comes to the line as PostgreSQL does.
func (f *following) connect(t *testing.T, change ...string) (*pgconn.PgConn, error) {
	t.Helper()
	c := check.Must(pgconn.ParseConfig(f.conninfo()))(t)
	c.RuntimeParams = map[string]string{"replication": "database", "client_encoding": "UTF8"}
	for i := 0; i+1 < len(change); i += 2 {
		switch change[i] {
		case "password":
			c.Password = change[i+1]
		case "user":
			c.User = change[i+1]
		case "database":
			c.Database = change[i+1]
		default:
			c.RuntimeParams[change[i]] = change[i+1]
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func state(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return fmt.Sprint(err)
}

// A subscription of somebody who is no superuser follows through the line, and goes on after the source's PostgreSQL and the line
// have gone down.
func TestASubscriptionFollowsThroughTheLine(t *testing.T) {
	t.Parallel()
	f := newFollowing(t)
	to := open(t, f.to, "orders")
	do(t, to, "CREATE ROLE agent LOGIN CREATEDB", "GRANT pg_create_subscription TO agent",
		"GRANT CREATE ON DATABASE orders TO agent",
		"ALTER TABLE things OWNER TO agent", "GRANT agent TO CURRENT_USER", "SET ROLE agent")
	to.SetMaxOpenConns(1)
	do(t, to, "SET ROLE agent", "CREATE SUBSCRIPTION follower CONNECTION '"+strings.ReplaceAll(f.conninfo(), "'", "''")+
		"' PUBLICATION move_1 WITH (create_slot = false, slot_name = 'move_1', copy_data = false)")
	arrives := func(n int) {
		t.Helper()
		check.Eventually(t, "changes do not come", func() bool {
			var seen int
			return to.QueryRowContext(t.Context(), "SELECT count(*) FROM things").Scan(&seen) == nil && seen == n
		})
	}
	do(t, f.there, "INSERT INTO things SELECT n, repeat('x', 10000) FROM generate_series(2, 1000) n")
	arrives(1000)
	do(t, to, "ALTER SUBSCRIPTION follower REFRESH PUBLICATION WITH (copy_data = false)")
	check.NoError(t, f.from.Restart(context.Background(), cluster.Immediate))
	check.Eventually(t, "the source does not come back", func() bool { return f.there.PingContext(t.Context()) == nil })
	do(t, f.there, "INSERT INTO things VALUES (1001, 'after')")
	arrives(1001)
	if err := f.lines.Failure(op); err != nil {
		t.Errorf("while it follows: %v", err)
	}
	f.drop(op) // at the source
	check.Eventually(t, "it follows on", func() bool {
		var unlike *UnlikeError
		return errors.As(f.lines.Failure(op), &unlike)
	})
	do(t, to, "ALTER SUBSCRIPTION follower DISABLE", "ALTER SUBSCRIPTION follower SET (slot_name = NONE)",
		"DROP SUBSCRIPTION follower")
}

func TestAPeerGetsNothingButTheChanges(t *testing.T) {
	t.Parallel()
	f := newFollowing(t)
	conn := check.Must(f.connect(t))(t)
	rows := check.Must(conn.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll())(t)
	if len(rows) != 1 || string(rows[0].Rows[0][3]) != "orders" {
		t.Errorf("IDENTIFY_SYSTEM: %v", rows)
	}
	for _, statement := range []string{
		"BASE_BACKUP", `START_REPLICATION SLOT "other" LOGICAL 0/0 (proto_version '4', publication_names '"move_1"')`,
		`START_REPLICATION SLOT "move_1" LOGICAL 0/0 (proto_version '4', publication_names '"other"')`,
		`DROP_REPLICATION_SLOT "other"`, "SELECT * FROM things", "IDENTIFY_SYSTEM; BASE_BACKUP",
	} {
		conn := check.Must(f.connect(t))(t)
		if _, err := conn.Exec(t.Context(), statement).ReadAll(); state(err) != stateRefused {
			t.Errorf("%s: %v", statement, err)
		}
	}
	conn = check.Must(f.connect(t))(t)
	if err := conn.ExecParams(t.Context(), "IDENTIFY_SYSTEM", nil, nil, nil, nil).Read().Err; state(err) != stateRefused {
		t.Errorf("a statement in parts: %v", err)
	}
	for what, c := range map[string]struct{ key, value, state string }{
		"no replication":    {"replication", "false", stateRefused},
		"a whole server":    {"replication", "true", stateRefused},
		"an option":         {"options", "-c role=postgres", stateRefused},
		"a setting":         {"search_path", "public", stateRefused},
		"another password":  {"password", "pw", statePassword},
		"another operation": {"user", userOf(otherOp), statePassword},
		"another database":  {"database", "postgres", statePassword},
		"an unknown login":  {"user", "postgres", statePassword},
	} {
		if _, err := f.connect(t, c.key, c.value); state(err) != c.state {
			t.Errorf("%s: %v", what, err)
		}
	}
	var slots int
	check.NoError(t, f.there.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_replication_slots").Scan(&slots))
	if slots != 2 {
		t.Errorf("%d slots are left", slots)
	}
}

// Whoever comes to the port and says nothing, or nonsense, keeps nobody out, and a line has no more connections than it may.
func TestStrangersAtTheLine(t *testing.T) {
	t.Parallel()
	f := newFollowing(t)
	address := fmt.Sprintf("127.0.0.1:%d", f.lines.port)
	for _, text := range []string{
		"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x08\x04\xd2\x16\x2e",
		"\xff\xff\xff\xff", "\x00\x00\x00\x08\x00\x03\x00\x00",
	} {
		conn := check.Must(net.Dial("tcp", address))(t)
		check.Must(io.WriteString(conn, text))(t)
		_ = conn.(*net.TCPConn).CloseWrite() // it may have been refused already
		_, _ = io.ReadAll(conn)              // whatever it hears
		check.NoError(t, conn.Close())
	}
	var open []*pgconn.PgConn
	for range mostOfLine {
		open = append(open, check.Must(f.connect(t))(t))
	}
	if _, err := f.connect(t); state(err) != stateCrowded {
		t.Errorf("one connection more: %v", err)
	}
	check.NoError(t, open[0].Close(t.Context()))
	check.Eventually(t, "it stays crowded", func() bool { _, err := f.connect(t); return err == nil })
}

// A line whose peer is away, or is none, says so to PostgreSQL, and to who asks for its failure.
func TestALineToNobody(t *testing.T) {
	t.Parallel()
	f := &following{lines: NewLines(nil, zap.NewNop())}
	t.Cleanup(f.lines.Stop)
	check.NoError(t, f.lines.listen(0))
	closed := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	check.NoError(t, closed.Close())
	f.line = f.lines.put(op, line{
		db: "orders", password: "of-the-line", peer: command.Peer{URL: "https://" + closed.Addr().String(), Token: token},
	})
	if _, err := f.connect(t); state(err) != stateAway || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
	var away *AwayError
	if err := f.lines.Failure(op); !errors.As(err, &away) {
		t.Errorf("%v", err)
	}
	s := newSource(t) // it does not follow this operation
	s.Changes.Of = func(context.Context, id.OperationID) (Followed, error) {
		return Followed{}, command.Refuse(command.ReasonNotFound, "nothing is followed")
	}
	f.line = f.lines.put(op, line{
		db: "orders", password: "of-the-line", peer: command.Peer{URL: "https://" + s.address, CA: s.ca, Token: token},
	})
	if _, err := f.connect(t); state(err) != stateAway {
		t.Errorf("%v", err)
	}
	var no *command.Refusal
	if err := f.lines.Failure(op); !errors.As(err, &no) || no.Reason != command.ReasonFailed {
		t.Errorf("%v", err)
	}
}
