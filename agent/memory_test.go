package agent_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/database"
)

// message is one of PostgreSQL's protocol that says its length.
func message(kind byte, parts ...string) []byte {
	var body bytes.Buffer
	for _, p := range parts {
		body.WriteString(p)
	}
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(body.Len()+4)), body.Bytes()...)
}

// large is some of PgBouncer's memory; PgBouncer counts a text once.
func large(n int) string { return fmt.Sprint(n) + string(bytes.Repeat([]byte("x"), 4<<20)) }

var (
	syncMessage = message('S')
	closePortal = message('C', "P\x00")
)

func prepare(name, text string) []byte { return message('P', name, "\x00", text, "\x00\x00\x00") }

// hoards are ways to have PgBouncer hold more and more. Each is what a client sends at an entry, by number, until it is ended.
var hoards = []struct {
	name, entry string
	clients     int
	send        func(n int) []byte
}{
	{"texts of statements", ".transaction", 1, func(n int) []byte {
		return append(prepare(fmt.Sprint(n), "SELECT 1 --"+large(n)), syncMessage...)
	}},
	{"names of statements", ".transaction", 1, func(n int) []byte {
		return append(prepare(large(n), "SELECT 1"), syncMessage...)
	}},
	{"a statement of each client", ".transaction", 40, func(n int) []byte {
		if n > 0 {
			time.Sleep(time.Second)
			return syncMessage
		}
		return append(prepare("s", "SELECT 1 --"+large(int(time.Now().UnixNano()))), syncMessage...)
	}},
	{"small statements", ".transaction", 4, func(n int) []byte {
		var all []byte
		for i := range 1000 {
			all = append(all, prepare(fmt.Sprint(n, "-", i), fmt.Sprintf("SELECT %d, %d", n, i))...)
		}
		return append(all, syncMessage...)
	}},
	{"statements of one transaction, closed at once", ".transaction", 1, func(n int) []byte {
		if n == 0 {
			return message('Q', "BEGIN\x00")
		}
		return append(append(prepare("s", "SELECT 1 --"+large(n)), message('C', "Ss\x00")...), syncMessage...)
	}},
	{"half a message", ".transaction", 4, func(n int) []byte {
		if n > 0 {
			time.Sleep(time.Second)
			return []byte{'x'}
		}
		return append(binary.BigEndian.AppendUint32([]byte{'P'}, 60<<20), large(n)...)
	}},
	{"requests that get no answer", "", 2, func(n int) []byte {
		if n == 0 {
			return prepare("", "no statement")
		}
		return bytes.Repeat(closePortal, 100_000)
	}},
}

// Whoever has PgBouncer hold too much is ended, and nobody else.
func TestHoardersOfThePoolersMemoryAreEnded(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.PoolerMemory = 96 << 20
	a, logs, _ := s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	quiet := s.Made(t, database.Managed)
	hoarding, another := agenttest.NewUUID(), agenttest.NewUUID()
	name, password := quiet.Login(database.OwnerLogin)
	session := check.Must(s.Pooled(t, quiet.Name, name, password).Conn(t.Context()))(t)
	pooled := check.Must(pgconn.Connect(t.Context(), s.PooledURL(quiet.Name+".transaction", name, password)))(t)
	defer pooled.Close(t.Context())
	check.Must(pooled.Prepare(t.Context(), "own", "SELECT 1", nil))(t)

	for _, h := range sample.OneIn(t, 3, hoards) {
		hoarder := s.Made(t, database.Managed) // of its own: who comes back is kept out
		s.TellAccounts(t, map[string][]agenttest.Wanted{hoarding: {hoarder}, another: {quiet}})
		name, password := hoarder.Login(database.OwnerLogin)
		before := a.Clients().Memory
		var all []net.Conn
		for range h.clients {
			conn := check.Must(pgconn.Connect(t.Context(), s.PooledURL(hoarder.Name+h.entry, name, password)))(t)
			all = append(all, check.Must(conn.Hijack())(t).Conn)
		}
		for _, conn := range all { // when all are in: who is ended twice is kept out
			hoard(conn, h.send)
		}
		check.Eventually(t, h.name+": nobody is ended", func() bool { return a.Clients().Memory > before })
		for _, conn := range all {
			_ = conn.Close()
		}
		_, err := session.ExecContext(t.Context(), "SELECT 1")
		check.NoError(t, err, h.name+": a bystander's session")
		check.NoError(t, pooled.ExecPrepared(t.Context(), "own", nil, nil, nil).Read().Err, h.name+": a bystander's statement")
		s.GetsIn(t, h.name, quiet.Present(database.OwnerLogin))
	}
	for _, line := range logs.FilterMessageSnippet("hold much of PgBouncer's memory").All() {
		if of := line.ContextMap(); of["account"] != hoarding {
			t.Errorf("the log says %v", of)
		}
	}
}

// hoard sends until the connection is ended, and reads what is answered.
func hoard(conn net.Conn, send func(n int) []byte) {
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	go func() {
		defer conn.Close()
		for n := 0; ; n++ {
			if _, err := conn.Write(send(n)); err != nil {
				return
			}
		}
	}()
}
