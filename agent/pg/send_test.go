package pg

import (
	"database/sql"
	"fmt"
	"strconv"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// reluctant is a database that refuses the first tries of a transaction for want of a privilege. It counts in sequences, which
// no rollback takes back.
func reluctant(t *testing.T, refusals int) clustertest.Database {
	t.Helper()
	d := clustertest.NewDatabase(t)
	clustertest.Exec(t, d.URL, "CREATE SEQUENCE public.tries MINVALUE 0 START 1", "CREATE TABLE public.done (try int)",
		fmt.Sprintf(`CREATE FUNCTION public.attempt() RETURNS bigint LANGUAGE plpgsql AS $$
			DECLARE try bigint := nextval('public.tries');
			BEGIN
				EXECUTE format('SELECT setval(%%L, %%s)', 'public.session_' || try, pg_backend_pid());
				IF try <= %d THEN RAISE 'not yet' USING ERRCODE = 'insufficient_privilege'; END IF;
				RETURN try;
			END $$`, refusals))
	for try := range freshTries + 1 {
		clustertest.Exec(t, d.URL, fmt.Sprintf("CREATE SEQUENCE public.session_%d", try+1))
	}
	return d
}

const attempt = "INSERT INTO public.done SELECT public.attempt()"

// tried checks how often the transaction was tried, each time by another session, and what is left of it.
func tried(t *testing.T, db *sql.DB, tries, done int) {
	t.Helper()
	if got := scan(t, db, "SELECT last_value FROM public.tries"); got != tries {
		t.Errorf("tried %d times, not %d", got, tries)
	}
	sessions := map[int]bool{}
	for try := range tries {
		sessions[scan(t, db, "SELECT last_value FROM public.session_"+strconv.Itoa(try+1))] = true
	}
	if len(sessions) != tries {
		t.Errorf("%d tries over %d connections", tries, len(sessions))
	}
	if got := scan(t, db, "SELECT count(*) FROM public.done"); got != done {
		t.Errorf("%d rows, not %d", got, done)
	}
}

func scan(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	check.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

// ways are the two in which transactions reach PostgreSQL.
var ways = map[string]func(t *testing.T, d clustertest.Database, statement string) error{
	"pool": func(t *testing.T, d clustertest.Database, statement string) error {
		t.Helper()
		return Atomically(t.Context(), d.Open(t), statement)
	},
	"once": func(t *testing.T, d clustertest.Database, statement string) error {
		t.Helper()
		return Once(t.Context(), check.Must(pq.NewConfig(d.URL))(t), statement)
	},
}

func TestRefusedPrivilegeIsTriedOverAnotherConnection(t *testing.T) {
	for way, send := range ways {
		for _, refusals := range []int{0, 1, freshTries - 1} {
			t.Run(fmt.Sprintf("%s %d", way, refusals), func(t *testing.T) {
				d := reluctant(t, refusals)
				check.NoError(t, send(t, d, attempt))
				tried(t, d.Open(t), refusals+1, 1)
			})
		}
	}
}

func TestPrivilegeThatStaysRefusedIsAnError(t *testing.T) {
	for way, send := range ways {
		t.Run(way, func(t *testing.T) {
			d := reluctant(t, freshTries)
			if err := send(t, d, attempt); State(err) != InsufficientPrivilege {
				t.Error(err)
			}
			tried(t, d.Open(t), freshTries, 0)
		})
	}
}

// What was refused for another reason is refused once, and the connection serves on.
func TestOtherRefusalsAreNotTriedAgain(t *testing.T) {
	d := reluctant(t, 0)
	pool := d.Open(t)
	pool.SetMaxOpenConns(1)
	session := scan(t, pool, "SELECT pg_backend_pid()")
	if err := Atomically(t.Context(), pool, attempt, "SELECT 1/0"); State(err) != "22012" {
		t.Error(err)
	}
	tried(t, d.Open(t), 1, 0)
	if now := scan(t, pool, "SELECT pg_backend_pid()"); now != session {
		t.Error("the connection was given up")
	}
}
