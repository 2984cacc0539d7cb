package pooler

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// park begins a log-in through the unix socket and stops when PgBouncer has asked for the password: from here on the
// verifier of that moment decides, whatever happens to the gate.
func park(t *testing.T, s *stack, entry, login string) net.Conn {
	t.Helper()
	conn := check.Must(net.Dial("unix", filepath.Join(s.settings.SocketDir, fmt.Sprintf(".s.PGSQL.%d", s.settings.ListenPort))))(t)
	t.Cleanup(func() { _ = conn.Close() })
	body := "\x00\x03\x00\x00user\x00" + login + "\x00database\x00" + entry + "\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	check.Must(conn.Write(append(message, body...)))(t)
	answer := make([]byte, 9)
	if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 'R' || answer[8] != 10 {
		t.Fatalf("no question for a SCRAM password: %q, %v", answer, err)
	}
	return conn
}

func TestEvictWaitsForParkedLogins(t *testing.T) {
	s := realStack(t)
	parked := park(t, s, "shop", "shop")
	execute(t, s, "UPDATE pooler.gate SET open = false WHERE login = 'shop'")

	for name, who := range map[string]Who{"another login": OfLogin("blog"), "another database": OfDatabase("blog")} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if err := s.pooler.Evict(ctx, who); err != nil {
			t.Errorf("%s waits too: %v", name, err)
		}
		cancel()
	}
	for name, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop"), "all": Everyone()} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := s.pooler.Evict(ctx, who); ctx.Err() == nil || err == nil {
			t.Errorf("%s: Evict did not wait for the parked log-in: %v", name, err)
		}
		cancel()
	}
	_ = parked.Close()
	check.NoError(t, s.pooler.Evict(t.Context(), OfLogin("shop")))
}

func TestParkedLoginEndsBySettings(t *testing.T) {
	s := realStack(t)
	park(t, s, "shop", "shop")
	began := time.Now()
	check.NoError(t, s.pooler.Evict(t.Context(), OfLogin("shop")))
	if took := time.Since(began); took < 2*time.Second || took > 8*time.Second {
		t.Errorf("a parked log-in lasted %s, client_login_timeout is 5 s", took)
	}
}

// TestClientAskingForItsVerifierIsPending holds that a log-in whose verifier was asked for before the gate closed is seen.
func TestClientAskingForItsVerifierIsPending(t *testing.T) {
	s := realStack(t)
	lock := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	defer func() { _ = lock.Rollback() }()
	check.Must(lock.Exec("LOCK TABLE pooler.gate"))(t)
	proved := make(chan error, 1)
	go func() { proved <- s.pooler.Prove(t.Context(), "shop", "shop", "shop-pw") }()
	check.Eventually(t, "the log-in is not pending", func() bool {
		pending := check.Must(s.pooler.PendingLogins(t.Context()))(t)
		return len(pending) == 1 && pending[0].ID != ""
	})
	for what, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop")} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := s.pooler.Evict(ctx, who); err == nil {
			t.Errorf("%s: Evict did not wait for a log-in whose verifier is being asked for", what)
		}
		cancel()
	}
	_ = lock.Rollback()
	check.NoError(t, <-proved, "the waiting log-in")
}

// TestWhoHasNotSaidItsNameIsNotWaitedFor holds that an open connection alone, which needs no password, delays nobody; and that
// its verifier is asked for only when it says who it is.
func TestWhoHasNotSaidItsNameIsNotWaitedFor(t *testing.T) {
	s := realStack(t)
	socket := filepath.Join(s.settings.SocketDir, fmt.Sprintf(".s.PGSQL.%d", s.settings.ListenPort))
	silent := make(map[string]net.Conn)
	for _, what := range []string{"nothing", "half a message"} {
		conn := check.Must(net.Dial("unix", socket))(t)
		t.Cleanup(func() { _ = conn.Close() })
		silent[what] = conn
	}
	body := "\x00\x03\x00\x00user\x00shop\x00database\x00shop\x00\x00"
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
	check.Must(silent["half a message"].Write(message[:10]))(t)
	for waiting := 0; waiting < len(silent); {
		waiting = 0
		err := s.pooler.each(t.Context(), "SHOW SOCKETS", func(r row) error {
			if r.text("state") == "cl_login" {
				waiting++
			}
			return nil
		})
		check.NoError(t, err)
	}
	execute(t, s, "UPDATE pooler.gate SET open = false WHERE login = 'shop'")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for what, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop")} {
		check.NoError(t, s.pooler.Evict(ctx, who), what)
	}
	check.Must(silent["half a message"].Write(message[10:]))(t)
	answer := make([]byte, 9)
	if _, err := io.ReadFull(silent["half a message"], answer); err != nil || answer[0] == 'R' && answer[8] == 0 {
		t.Errorf("what it got behind a closed gate: %q, %v", answer, err)
	}
}
