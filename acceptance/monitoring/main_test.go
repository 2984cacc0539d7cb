//go:build monitoring && linux

// Package monitoring runs the examples of docs/operate/monitoring.md as they stand there: Prometheus, Alertmanager and rsyslog,
// as Debian has them, watch a pgherd, page somebody, mail, and send its log lines on.
package monitoring

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
)

// insideVariable is set in the process that has a network of its own.
const insideVariable = "PGHERD_MONITORING_INSIDE"

// TestExamples runs this program again, in a network of its own, where each name and port of the examples is free, and with
// mounts of its own. It takes root.
func TestExamples(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		check.NoError(t, loopbackUp())
		followExamples(t)
		return
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestExamples$", "-test.v", "-test.timeout=20m")
	run.Env = append(os.Environ(), insideVariable+"=1")
	run.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// loopbackUp makes the loopback addresses of a new network work.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}

// addresses are those of the hosts that the examples name.
var addresses = map[string]string{
	"alerts.example.com": "127.0.0.1", "api1": "127.0.1.1", "db1": "127.0.1.3",
	"pager.example.com": "127.0.1.4", "mail.example.com": "127.0.1.5", "logs.example.com": "127.0.1.6",
}

// listen opens the port of a host that the examples name.
func listen(t *testing.T, host, port string) net.Listener {
	t.Helper()
	ln := check.Must(net.Listen("tcp", net.JoinHostPort(addresses[host], port)))(t)
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}
