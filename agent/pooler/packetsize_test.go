package pooler

import (
	"net"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// TestTooLargeMessageIsRefusedByItsHeader holds that PgBouncer neither waits for nor makes room for a message that is too large.
func TestTooLargeMessageIsRefusedByItsHeader(t *testing.T) {
	s := realStack(t)
	most := uint32(s.settings.MaxPacket)
	for size, refused := range map[uint32]bool{most: false, most + 1: true, 1<<31 - 1: true, 1<<32 - 1: true} {
		conn := check.Must(net.Dial("tcp", s.bouncer.Address()))(t)
		// A message's length does not count its type.
		check.Must(conn.Write(messageOf('p', size-1, "")))(t)
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		kind, _, said, err := readAnswer(conn)
		if got := err == nil && kind == 'E'; got != refused {
			t.Errorf("a message of %d bytes: refused %t (%q, %v)", size, got, said, err)
		}
		_ = conn.Close()
	}
}
