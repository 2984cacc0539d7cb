package browser

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
)

// watched is a test that is expected to fail.
type watched struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	cleanups []func()
}

func (w *watched) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *watched) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}

func (w *watched) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}

func (w *watched) Fatal(args ...any)      { w.Fatalf("%s", fmt.Sprint(args...)) }
func (w *watched) Logf(string, ...any)    {}
func (w *watched) Cleanup(cleanup func()) { w.cleanups = append(w.cleanups, cleanup) }

func TestMain(m *testing.M) {
	sample.Tests(5)
	os.Exit(m.Run())
}

// watch runs what is expected to fail, to its end, and returns what it said.
func watch(t *testing.T, what func(t testing.TB)) []string {
	t.Helper()
	w := &watched{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(w.cleanups) {
				cleanup()
			}
		}()
		what(w)
	}()
	<-done
	return w.said
}

func TestNothingIsLeftOfABrowser(t *testing.T) {
	var group int
	var home string
	t.Run("while it runs", func(t *testing.T) {
		s := newSite(t)
		b := Start(t, s.roots, s.origin)
		b.Open(t, s.origin, Options{}).Goto("/")
		group, home = b.group, b.home
		if len(living(group)) == 0 {
			t.Fatal("it has no processes")
		}
	})
	if left := living(group); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

// heldVariable makes TestKilledTestTakesItsBrowserAlong, in a process of its own, say its browser's process group and wait to be
// killed.
const heldVariable = "PGHERD_TEST_HELD"

func hold(t *testing.T) {
	t.Helper()
	s := newSite(t)
	b := Start(t, s.roots, s.origin)
	b.Open(t, s.origin, Options{}).Goto("/")
	fmt.Println("group", b.group)
	select {}
}

func TestKilledTestTakesItsBrowserAlong(t *testing.T) {
	if os.Getenv(heldVariable) != "" {
		hold(t)
	}
	test := exec.CommandContext(t.Context(), check.Must(os.Executable())(t), "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(os.Environ(), heldVariable+"=1", "TMPDIR="+t.TempDir())
	test.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := check.Must(test.StdoutPipe())(t)
	check.NoError(t, test.Start())
	var group int
	for lines := bufio.NewScanner(out); group == 0; {
		if !lines.Scan() {
			t.Fatal("it does not start")
		}
		if _, err := fmt.Sscanf(lines.Text(), "group %d", &group); err != nil && strings.HasPrefix(lines.Text(), "group") {
			t.Fatal(err)
		}
	}
	if len(living(group)) < 2 {
		t.Error("it has no processes besides the first")
	}
	check.NoError(t, test.Process.Kill())
	_ = test.Wait() // It was killed.
	check.Eventually(t, "processes outlive the test", func() bool { return len(living(group)) == 0 })
}

func TestCertificatesThatAreNotTheRootsAreRefused(t *testing.T) {
	s, another := newSite(t), newSite(t)
	said := watch(t, func(t testing.TB) { Start(t, another.roots, s.origin) })
	if len(said) != 1 || !strings.Contains(said[0], "unknown authority") {
		t.Errorf("said %q", said)
	}
	b := Start(t, s.roots, s.origin)
	said = watch(t, func(t testing.TB) { b.Open(t, another.origin, Options{}).Goto("/") })
	if !strings.Contains(strings.Join(said, "\n"), "ERR_CERT_AUTHORITY_INVALID") {
		t.Errorf("said %q", said)
	}
}

func TestAnswersOverHTTP1AreAFault(t *testing.T) {
	s := newSite(t)
	old := httptest.NewUnstartedServer(s.mux)
	old.TLS = s.tls
	old.StartTLS()
	t.Cleanup(old.Close)
	said := watch(t, func(t testing.TB) {
		origin := strings.Replace(old.URL, "127.0.0.1", "localhost", 1)
		Start(t, s.roots, origin).Open(t, origin, Options{}).Goto("/")
	})
	if len(said) == 0 || !strings.Contains(said[0], "came over http/1.1") {
		t.Errorf("said %q", said)
	}
}
