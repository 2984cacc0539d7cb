package pooler

import (
	"net"
	"strings"
	"testing"
	"time"
)

// TestTooLargeMessageIsRefusedByItsHeader holds that PgBouncer neither waits for nor makes room for a message that is too large.
func TestTooLargeMessageIsRefusedByItsHeader(t *testing.T) {
	s := realStack(t)
	most := uint32(s.settings.MaxPacket)
	for size, refused := range map[uint32]bool{most: false, most + 1: true, 1<<31 - 1: true, 1<<32 - 1: true} {
		conn, err := net.Dial("tcp", s.bouncer.Address())
		if err != nil {
			t.Fatal(err)
		}
		// A message's length does not count its type.
		if _, err := conn.Write(messageOf('p', size-1, "")); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		kind, _, said, err := readAnswer(conn)
		if got := err == nil && kind == 'E'; got != refused {
			t.Errorf("a message of %d bytes: refused %t (%q, %v)", size, got, said, err)
		}
		_ = conn.Close()
	}
}

// TestLargestFirstMessageOfALogInHurtsNobody holds that the bound is low enough: PgBouncer copies that message several times, on
// its only thread, before it has seen a password. At 1 GiB everybody waits for seconds.
func TestLargestFirstMessageOfALogInHurtsNobody(t *testing.T) {
	s := realStack(t)
	c, b := newCrowd(t, s, 0), newBystander(t, s)
	t.Cleanup(func() { restartAfterFailure(t, s, 0) })
	conn, err := c.dial(true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(startup("user", "shop", "database", "shop"))
	if kind, code, _, err := readAnswer(conn); err != nil || kind != 'R' || code != saslAsked {
		t.Fatalf("shop was not asked for its password: %q %d, %v", kind, code, err)
	}
	begin := saslInitial("SCRAM-SHA-256", "n,,n=,r=")
	nonce := strings.Repeat("a", s.settings.MaxPacket-len(begin)-3)   // 1.24 reads a long message three bytes too late
	_, _ = conn.Write(saslInitial("SCRAM-SHA-256", "n,,n=,r="+nonce)) // PgBouncer may hang up in the middle
	_, _, _, _ = readAnswer(conn)                                     // until it has copied it
	b.rest(t, 10)
}
