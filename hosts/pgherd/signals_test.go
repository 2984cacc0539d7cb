package main_test

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// SIGHUP ends no host, whenever it comes: a service manager, or the tool that has renewed a certificate, does not know what the
// host is doing.
func TestHangups(t *testing.T) {
	t.Parallel()
	t.Run("while it starts", func(t *testing.T) {
		t.Parallel()
		metadata := check.Must(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
		check.NoError(t, metadata.SetDeadline(time.Now().Add(check.Patience)))
		h := hosts{stacktest.Build(t, "pgherd"), "postgres://a:b@" + metadata.Addr().String() + "/c?sslmode=disable", "/nowhere"}
		one := h.start(t, "batch", "--ops-listen=127.0.0.1:0")
		asks := check.Must(metadata.Accept())(t)
		one.hangUp()
		check.NoError(t, metadata.Close())
		check.NoError(t, asks.Close())
		if code := one.exit(); code != 1 || !strings.Contains(one.said(), "--metadata-url") {
			t.Errorf("it ended with %d: %s", code, one.said())
		}
	})
	t.Run("while it stops", func(t *testing.T) {
		t.Parallel()
		h, ops := newHosts(t, clustertest.NewDatabase(t).URL), freeAddress(t)
		one := h.start(t, "batch", "--ops-listen", ops)
		one.awaitReady(ops)
		check.NoError(t, one.Process.Signal(syscall.SIGTERM))
		for one.running() {
			one.hangUp()
		}
		if code := one.exit(); code != 0 {
			t.Errorf("it ended with %d: %s", code, one.said())
		}
	})
}
