package crash_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// login is a name with a password at a database.
type login struct{ database, username, password string }

func loginOf(r wire.RevealedRole) login { return login{r.Database, r.Username, r.Password} }

func (l login) with(password string) login {
	l.password = password
	return l
}

// ways are how a login can get in: at PostgreSQL itself, which only the machine can reach, and with TLS at both entries of the
// pooler.
func (w *world) ways(t testing.TB, l login) map[string]*sql.DB {
	t.Helper()
	direct := stacktest.Open(t, w.Server.URLFor(l.username, l.password, l.database))
	direct.SetMaxOpenConns(1)
	pooled := func(entry string) *sql.DB {
		return openOne(t, w.PoolerURL(entry, l.username, l.password))
	}
	return map[string]*sql.DB{
		"directly": direct, "by session": pooled(l.database), "by transaction": pooled(l.database + ".transaction"),
	}
}

// getsIn fails the test unless the login gets in by every way.
func (w *world) getsIn(t testing.TB, l login) {
	t.Helper()
	for way, db := range w.ways(t, l) {
		var who, where string
		err := db.QueryRowContext(soon(t), "SELECT current_user, current_database()").Scan(&who, &where)
		if err != nil || who != l.username || where != l.database {
			t.Errorf("%s %s is %q at %q: %v", l.username, way, who, where, err)
		}
		noError(t, db.Close())
	}
}

// refusals are the codes with which a server refuses a log-in: PostgreSQL's three, the last to who lacks CONNECT, and PgBouncer's
// one for everything else.
var refusals = []pqerror.Code{"28P01", "28000", "42501", "08P01"}

// staysOut fails the test unless the login is refused by every way. No answer is no refusal.
func (w *world) staysOut(t testing.TB, what string, l login) {
	t.Helper()
	for way, db := range w.ways(t, l) {
		var refusal *pq.Error
		if err := db.PingContext(soon(t)); !errors.As(err, &refusal) || !slices.Contains(refusals, refusal.Code) {
			t.Errorf("%s %s of %s: %v", what, way, l.username, err)
		}
		noError(t, db.Close())
	}
}

// clients are connections of one login that stay open over what happens, by every way. A client of the pooler could come back to
// life with the next log-in: so the late ones are not looked at before that.
type clients struct{ early, late map[string]*sql.Conn }

func (w *world) openClients(t testing.TB, l login) clients {
	t.Helper()
	all := func() map[string]*sql.Conn {
		conns := map[string]*sql.Conn{}
		for way, db := range w.ways(t, l) {
			conn := must(db.Conn(soon(t)))(t)
			t.Cleanup(func() { _ = conn.Close() }) // it has been ended
			noError(t, conn.PingContext(soon(t)))
			conns[way] = conn
		}
		return conns
	}
	return clients{all(), all()}
}

// brief is how long a connection has to tell that it was ended. A client that merely waits in the pooler's queue does so for
// longer, and hears of nothing.
const brief = 10 * time.Second

// ended fails the test unless each connection was ended, by a server that said so or by whoever closed it.
func ended(t testing.TB, conns map[string]*sql.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	for way, conn := range conns {
		if _, err := conn.ExecContext(ctx, "SELECT 1"); ctx.Err() != nil || !isEnd(err) {
			t.Errorf("a connection of before was not ended: %s: %v", way, err)
		}
	}
}

// endings are the codes with which a session is ended: by an administrator, by a crash of the server, and by PgBouncer.
var endings = []pqerror.Code{"57P01", "57P02", "08P01"}

func isEnd(err error) bool {
	var told *pq.Error
	if errors.As(err, &told) {
		return slices.Contains(endings, told.Code)
	}
	return slices.ContainsFunc([]error{driver.ErrBadConn, io.EOF, syscall.ECONNRESET, syscall.EPIPE}, func(end error) bool {
		return errors.Is(err, end)
	})
}

// replaced fails the test unless the new password gets in, and the old one and every connection made with it are dead.
func (c clients) replaced(t testing.TB, w *world, before, now login) {
	t.Helper()
	if before.password == now.password || now.password == "" {
		t.Fatal("there is no new password")
	}
	ended(t, c.early)
	w.getsIn(t, now)
	ended(t, c.late)
	w.staysOut(t, "the old password", before)
	w.getsIn(t, now)
}

// shut fails the test unless the password and every connection made with it are dead.
func (c clients) shut(t testing.TB, w *world, before login) {
	t.Helper()
	ended(t, c.early)
	w.staysOut(t, "a password of before", before)
	ended(t, c.late)
}

// notYet fails the test where a role that is not ready shows its password.
func (h *shared) notYet(t *testing.T, api *stack.Host, r wire.ListedRole) {
	t.Helper()
	if r.Status == "ready" {
		return
	}
	_, err := h.tryReveal(t, api, r.RoleID)
	refused(t, "the password of a role that is "+string(r.Status), err, h.model.conflict())
}
