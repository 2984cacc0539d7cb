package copyout

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// connected is a connection that is read in batches, and its other end.
func connected(t *testing.T) (here, there net.Conn) {
	t.Helper()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	plain := check.Must(net.Dial("tcp", listener.Addr().String()))(t)
	there = check.Must(listener.Accept())(t)
	here = inBatches(plain)
	if here == plain {
		t.Fatal("it is not read in batches")
	}
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return here, there
}

// However it comes, all of it is read, and what does not fill a batch soon.
func TestBatchesHoldNothingBack(t *testing.T) {
	here, there := connected(t)
	sent := make([]byte, 8<<20)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(sent) // never fails
	go func() {
		random := rand.New(chance)
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(2*batchSize))
			_, _ = there.Write(rest[:n])
			rest = rest[n:]
			time.Sleep(time.Duration(random.IntN(4)) * batchPause / 2)
		}
	}()
	got := make([]byte, len(sent))
	check.Must(io.ReadFull(here, got))(t)
	if !bytes.Equal(got, sent) {
		t.Error("it is not what was sent")
	}
	for range 100 {
		began := time.Now()
		check.Must(there.Write([]byte("x")))(t)
		check.Must(io.ReadFull(here, got[:1]))(t)
		if took := time.Since(began); took > time.Second {
			t.Fatalf("a byte took %s", took)
		}
	}
}

// A deadline ends whoever waits, for a batch or for the first byte.
func TestDeadlinesHoldForBatches(t *testing.T) {
	for _, before := range []int{0, 4 * batchSize} {
		here, there := connected(t)
		go func() { _, _ = there.Write(make([]byte, before)) }()
		check.Must(io.ReadFull(here, make([]byte, before)))(t)
		go func() {
			time.Sleep(5 * batchPause)
			_ = here.SetDeadline(time.Unix(1, 0))
		}()
		if _, err := here.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %d bytes: %v", before, err)
		}
	}
}
