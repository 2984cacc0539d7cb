package dev_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// developer runs "pgherd dev" in a folder of its own, on ports that are free.
type developer struct {
	t       *testing.T
	program string
	root    string // of the repository, where the tools are
	dir     string
	flags   []string
	out     *transcript
	cmd     *exec.Cmd
	ended   chan error
}

// transcript is what the terminal shows; it can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func newDeveloper(t *testing.T, root, program string) *developer {
	t.Helper()
	d := &developer{t: t, program: program, root: root, dir: t.TempDir()}
	check.NoError(t, os.Chmod(filepath.Dir(d.dir), 0o711)) // where root runs the tests, PostgreSQL's user goes through
	d.flags = []string{"--state-dir=" + filepath.Join(d.dir, ".pgherd", "dev")}
	for _, flag := range []string{"api-port", "ops-port", "agent-port", "pooler-port", "postgres-port"} {
		port := check.Must(cluster.FreePort("127.0.0.1"))(t)
		d.flags = append(d.flags, "--"+flag+"="+strconv.Itoa(port))
	}
	return d
}

func (d *developer) start() {
	d.t.Helper()
	d.out, d.ended = &transcript{}, make(chan error, 1)
	d.cmd = exec.CommandContext(context.WithoutCancel(d.t.Context()), d.program,
		append([]string{"dev"}, d.flags...)...)
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = d.root, d.out, d.out
	ready, done := filepath.Join(d.dir, ".pgherd/dev/env"), make(chan error, 1)
	before := modified(ready)
	check.NoError(d.t, d.cmd.Start())
	go func() { done <- d.cmd.Wait() }()
	d.ended = done
	d.t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	for deadline := time.Now().Add(2 * time.Minute); modified(ready).Equal(before) || !d.answers(); {
		select {
		case err := <-done:
			d.t.Fatalf("pgherd dev ended: %v\n%s", err, d.out)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("pgherd dev is not ready\n%s", d.out)
		}
	}
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (d *developer) answers() bool {
	conn, err := net.Dial("tcp", "127.0.0.1:"+strings.TrimPrefix(d.flags[1], "--api-port="))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// stop presses Ctrl-C once.
func (d *developer) stop() {
	d.t.Helper()
	d.endsAt(syscall.SIGINT)
}

func (d *developer) endsAt(s syscall.Signal) {
	d.t.Helper()
	check.NoError(d.t, d.cmd.Process.Signal(s))
	select {
	case err := <-d.ended:
		if err != nil || !strings.Contains(d.out.String(), "stopped;") {
			d.t.Fatalf("one %s should end it cleanly: %v\n%s", s, err, d.out)
		}
	case <-time.After(check.Patience):
		d.t.Fatalf("one %s did not end it\n%s", s, d.out)
	}
}

// shell runs what a reader copies.
func (d *developer) shell(script string) string {
	d.t.Helper()
	tools, err := toolchain.Find()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(tools.Psql)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// session is the first session of the README, as a reader copies it.
func session(t *testing.T, root string) string {
	t.Helper()
	readme := check.Must(os.ReadFile(filepath.Join(root, "README.md")))(t)
	_, rest, ok := strings.Cut(string(readme), "```sh\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no session")
	}
	return block
}

// Extensions that no trial has passed cannot be installed.
func TestExtensionsAreTried(t *testing.T) {
	d := newDeveloper(t, check.Must(toolchain.Root())(t), stacktest.Build(t, "pgherd"))
	d.start()
	defer d.stop()
	d.shell(`. .pgherd/dev/env; timeout 2m bash -c 'until [ "$(psql "$0" -Atc \
		"SELECT count(*) FROM extension_qualifications WHERE qualified")" = 3 ]; do sleep 0.1; done' "$PGHERD_METADATA_URL"`)
}

func TestTheREADMEsSessionWorksAndARestartKeepsEverything(t *testing.T) {
	root := check.Must(toolchain.Root())(t)
	d := newDeveloper(t, root, stacktest.Build(t, "pgherd"))
	bin := filepath.Join(d.dir, "bin")
	check.NoError(t, errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(stacktest.Build(t, "svc"), filepath.Join(bin, "svc"))))
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // below nohup the program would take it for ignored
	d.start()
	const count = `psql "${PGHERD_SERVER_URL%/*}/copy" -Atc 'SELECT count(*) FROM item'`
	const more = "\necho restored=$(" + count + ")\necho \"$PGPASSWORD\" > password\n"
	out := d.shell(session(t, root) + more)
	if !strings.Contains(out, "restored=1000") {
		t.Errorf("the backup did not come back whole:\n%s", out)
	}
	const showKeys = `. .pgherd/dev/env; echo $PGHERD_API_KEY $PGHERD_CI_KEY $PGHERD_ACCOUNT_ID
		curl -fsS $PGHERD_BASE_URL/api/v1/certificate-keys`
	keys := d.shell(showKeys)
	if !strings.Contains(keys, `"retiredAt":null`) {
		t.Errorf("no key signs certificates: %s", keys)
	}
	d.endsAt(syscall.SIGHUP)
	d.start()
	defer d.stop()
	if again := d.shell(showKeys); again != keys {
		t.Error("a restart made other keys")
	}
	out = d.shell(`set -a; . .pgherd/dev/env; set +a
		PGPASSWORD=$(cat password) bin/svc psql shop -- -Atc 'SELECT count(*) FROM item'`)
	if strings.TrimSpace(out) != "1000" {
		t.Errorf("the database has %q rows after a restart", out)
	}
	d.previewsComeAndGo()
}

func TestAPortInUseIsOneClearLineAndNothingStarts(t *testing.T) {
	root := check.Must(toolchain.Root())(t)
	d := newDeveloper(t, root, stacktest.Build(t, "pgherd"))
	taken := check.Must(net.Listen("tcp", "127.0.0.1:"+strings.TrimPrefix(d.flags[4], "--pooler-port=")))(t)
	defer taken.Close()
	cmd := exec.CommandContext(t.Context(), d.program, append([]string{"dev"}, d.flags...)...)
	cmd.Dir = d.root
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	text := strings.TrimSpace(string(out))
	if strings.Count(text, "\n") != 0 || !strings.Contains(text, "--pooler-port") {
		t.Errorf("want one line that names the flag, got:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(d.dir, ".pgherd/dev/postgres")); err == nil {
		t.Error("something was started")
	}
}
