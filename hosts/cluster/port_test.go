package cluster_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// A port is given away once, and to nobody while something listens there.
func TestFreePort(t *testing.T) {
	t.Parallel()
	const many = 500
	given := map[int]bool{}
	for range many {
		port := check.Must(cluster.FreePort("127.0.0.1"))(t)
		if given[port] {
			t.Fatalf("port %d is given away twice", port)
		}
		given[port] = true
		if port >= 32768 {
			t.Fatalf("port %d can be an outgoing connection's", port)
		}
	}
	for port := range given {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatalf("port %d is not free: %v", port, err)
		}
		check.NoError(t, listener.Close())
	}
}
