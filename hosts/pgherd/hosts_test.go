package main_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// hosts are started on metadata that have no server yet. They have the settings of an operator who gives no more than needed.
type hosts struct{ program, metadataURL, keyring string }

// newHosts prepares the metadata at superuserURL.
func newHosts(t *testing.T, superuserURL string) hosts {
	t.Helper()
	check.NoError(t, postgres.Migrate(t.Context(), superuserURL))
	h := hosts{stacktest.Build(t, "pgherd"), superuserURL, filepath.Join(t.TempDir(), "keyring.json")}
	check.Must(secretbox.Create(h.keyring))(t)
	return h
}

func (h hosts) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGHERD_METADATA_URL=" + h.metadataURL, "PGHERD_KEYRING_FILE=" + h.keyring}
	return cmd
}

// admin runs a command of the operator's.
func (h hosts) admin(t *testing.T, args ...string) (answer map[string]any) {
	t.Helper()
	out := check.Must(h.command(stacktest.Soon(t), append([]string{"admin", "--json"}, args...)...).Output())(t)
	check.NoError(t, json.Unmarshal(out, &answer))
	return answer
}

// host is a process that was started.
type host struct {
	*exec.Cmd
	t     *testing.T
	log   string
	ended chan struct{}
}

// start begins a host, and waits for nothing.
func (h hosts) start(t *testing.T, args ...string) *host {
	t.Helper()
	one := &host{h.command(context.Background(), args...), t, filepath.Join(t.TempDir(), "log"), make(chan struct{})}
	log := check.Must(os.Create(one.log))(t)
	defer log.Close()
	one.Stdout, one.Stderr = log, log
	check.NoError(t, one.Start())
	go func() {
		defer close(one.ended)
		_ = one.Wait() // ProcessState tells how it ended
	}()
	t.Cleanup(func() {
		_ = one.Process.Kill() // it may have ended
		<-one.ended
		if t.Failed() {
			t.Logf("%s: %s", args[0], one.said())
		}
	})
	return one
}

func (h *host) said() string { return string(check.Must(os.ReadFile(h.log))(h.t)) }

func (h *host) running() bool {
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

// awaitReady waits until a host whose operations listener is there says that it is ready.
func (h *host) awaitReady(ops string) {
	h.t.Helper()
	check.Eventually(h.t, "the host is not ready", func() bool {
		if !h.running() {
			h.t.Fatalf("the host has ended: %s", h.said())
		}
		request := check.Must(http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+ops+"/readyz", nil))(h.t)
		answer, err := http.DefaultClient.Do(request)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
}

// exit waits until the host has ended; -1 where a signal has ended it.
func (h *host) exit() int {
	h.t.Helper()
	select {
	case <-h.ended:
	case <-stacktest.Soon(h.t).Done():
		h.t.Fatalf("the host does not end: %s", h.said())
	}
	return h.ProcessState.ExitCode()
}

func (h *host) hangUp() { _ = h.Process.Signal(syscall.SIGHUP) } // it may have ended

func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t)))
}
