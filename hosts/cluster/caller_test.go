package cluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// TestCaller is no test of its own but the program that TestChildrenDieWithTheirCaller kills.
func TestCaller(t *testing.T) {
	dir := os.Getenv("PGHERD_TEST_CALLER_DIR")
	if dir == "" {
		return
	}
	pg := check.Must(cluster.Run(t.Context(), cluster.Options{Dir: dir, Fast: true}))(t)
	_, _ = os.Stdout.WriteString("pid " + strconv.Itoa(pg.Pid()) + "\n")
	select {}
}

func TestChildrenDieWithTheirCaller(t *testing.T) {
	dir := t.TempDir()
	caller := exec.Command(os.Args[0], "-test.run=^TestCaller$")
	caller.Env = append(os.Environ(), "PGHERD_TEST_CALLER_DIR="+dir)
	out := check.Must(caller.StdoutPipe())(t)
	check.NoError(t, caller.Start())
	line := check.Must(bufio.NewReader(out).ReadString('\n'))(t)
	pid := check.Must(strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid "))))(t)
	check.NoError(t, caller.Process.Kill())
	_ = caller.Wait()
	// The next run waits for what the killed caller left, and finds the cluster shut down cleanly.
	pg := check.Must(cluster.Run(t.Context(), cluster.Options{Dir: dir, Fast: true}))(t)
	defer stop(t, pg)
	if alive(pid) {
		t.Errorf("PostgreSQL %d outlived its caller", pid)
	}
}

// alive gives a process a second to end. One that has ended works in no folder, even while nobody has asked for its exit status.
func alive(pid int) bool {
	for range 100 {
		if _, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd"); err != nil {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// TestClosedFolder stands for a clone below /root: as root, the children's own user could not get there.
func TestClosedFolder(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	check.NoError(t, os.Mkdir(closed, 0o700))
	pg := check.Must(cluster.Run(t.Context(), cluster.Options{Dir: filepath.Join(closed, "cluster"), Fast: true}))(t)
	defer stop(t, pg)
	one(t, pg.URL("postgres"), "SELECT 1")
	if info, err := os.Stat("/proc/" + strconv.Itoa(pg.Pid())); err != nil || info.Sys().(*syscall.Stat_t).Uid == 0 {
		t.Errorf("PostgreSQL runs as root (%v)", err)
	}
}

func TestLongPathStillGetsASocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	pg := check.Must(cluster.Run(t.Context(), cluster.Options{Dir: dir, Fast: true}))(t)
	defer os.RemoveAll(pg.SocketDir())
	defer stop(t, pg)
	if _, err := os.Stat(filepath.Join(pg.SocketDir(), ".s.PGSQL."+strconv.Itoa(pg.Port()))); err != nil {
		t.Error(err)
	}
}
