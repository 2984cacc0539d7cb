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
)

// park begins a log-in through the unix socket and stops when PgBouncer has asked for the password: from here on the
// verifier of that moment decides, whatever happens to the gate.
func park(t *testing.T, s *stack, entry, login string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(s.settings.SocketDir, fmt.Sprintf(".s.PGSQL.%d", s.settings.ListenPort)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	body := "\x00\x03\x00\x00user\x00" + login + "\x00database\x00" + entry + "\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	if _, err := conn.Write(append(message, body...)); err != nil {
		t.Fatal(err)
	}
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
	for name, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop")} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := s.pooler.Evict(ctx, who); ctx.Err() == nil || err == nil {
			t.Errorf("%s: Evict did not wait for the parked log-in: %v", name, err)
		}
		cancel()
	}
	_ = parked.Close()
	if err := s.pooler.Evict(t.Context(), OfLogin("shop")); err != nil {
		t.Error(err)
	}
}

func TestParkedLoginEndsBySettings(t *testing.T) {
	s := realStack(t)
	park(t, s, "shop", "shop")
	began := time.Now()
	if err := s.pooler.Evict(t.Context(), OfLogin("shop")); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*time.Second || took > 8*time.Second {
		t.Errorf("a parked log-in lasted %s, client_login_timeout is 5 s", took)
	}
}

// TestClientAskingForItsVerifierIsPending holds that a log-in whose verifier was asked for before the gate closed is seen.
func TestClientAskingForItsVerifierIsPending(t *testing.T) {
	s := realStack(t)
	lock, err := s.super.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.Exec("LOCK TABLE pooler.gate"); err != nil {
		t.Fatal(err)
	}
	proved := make(chan error, 1)
	go func() { proved <- s.pooler.Prove(t.Context(), "shop", "shop", "shop-pw") }()
	deadline := time.Now().Add(3 * time.Second)
	for {
		pending, err := s.pooler.PendingLogins(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(pending) == 1 && pending[0].ID != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("pending log-ins: %+v", pending)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for what, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop")} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := s.pooler.Evict(ctx, who); err == nil {
			t.Errorf("%s: Evict did not wait for a log-in whose verifier is being asked for", what)
		}
		cancel()
	}
	_ = lock.Rollback()
	if err := <-proved; err != nil {
		t.Errorf("the waiting log-in: %v", err)
	}
}

// TestWhoHasNotSaidItsNameIsNotWaitedFor holds that an open connection alone, which needs no password, delays nobody; and that
// its verifier is asked for only when it says who it is.
func TestWhoHasNotSaidItsNameIsNotWaitedFor(t *testing.T) {
	s := realStack(t)
	socket := filepath.Join(s.settings.SocketDir, fmt.Sprintf(".s.PGSQL.%d", s.settings.ListenPort))
	silent := make(map[string]net.Conn)
	for _, what := range []string{"nothing", "half a message"} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		silent[what] = conn
	}
	body := "\x00\x03\x00\x00user\x00shop\x00database\x00shop\x00\x00"
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
	if _, err := silent["half a message"].Write(message[:10]); err != nil {
		t.Fatal(err)
	}
	for waiting := 0; waiting < len(silent); {
		waiting = 0
		err := s.pooler.each(t.Context(), "SHOW SOCKETS", func(r row) error {
			if r.text("state") == "cl_login" {
				waiting++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	execute(t, s, "UPDATE pooler.gate SET open = false WHERE login = 'shop'")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for what, who := range map[string]Who{"login": OfLogin("shop"), "database": OfDatabase("shop")} {
		if err := s.pooler.Evict(ctx, who); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := silent["half a message"].Write(message[10:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 9)
	if _, err := io.ReadFull(silent["half a message"], answer); err != nil || answer[0] == 'R' && answer[8] == 0 {
		t.Errorf("what it got behind a closed gate: %q, %v", answer, err)
	}
}
