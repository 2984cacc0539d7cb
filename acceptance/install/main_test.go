//go:build linux

// Package install follows docs/operate/production.md on machines of its own: folders of this one, with users and services as
// Debian has them. With the tag machines, it does what an operator does in a year by the pages of docs/operate, on machines with
// networks of their own.
package install

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
)

// insideVariable names the folder of the machines, in the process that has the users of the page. standInVariable names the
// program that a process stands in for.
const (
	insideVariable  = "PGHERD_INSTALL_INSIDE"
	standInVariable = "PGHERD_INSTALL_STAND_IN"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(standInVariable); name != "" {
		os.Exit(askMachine(name, os.Args[1:]))
	}
	sample.Tests(3)
	os.Exit(m.Run())
}

// TestThePageInstalls runs this program again, where the page's users can be made without this machine having them afterwards: as
// root, in a mount namespace with an /etc/passwd of its own. Where there is none, all users are one.
func TestThePageInstalls(t *testing.T) {
	if root := os.Getenv(insideVariable); root != "" {
		followPage(t, root, os.Getuid() != 0)
		return
	}
	root := openFolder(t)
	build(t, filepath.Join(root, "source", "bin"))
	if os.Getuid() != 0 {
		followPage(t, root, true)
		return
	}
	for _, name := range []string{"passwd", "group"} {
		check.NoError(t, os.WriteFile(filepath.Join(root, name), check.Must(os.ReadFile("/etc/"+name))(t), 0o644))
	}
	const mounts = `mount --make-rprivate / && mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group`
	if err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run(); err != nil {
		t.Logf("no mount namespace (%v): all users are nobody", err)
		handOver(t, root)
		inside(t, root, "5m", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, "true")
		return
	}
	inside(t, root, "5m", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, mounts)
}

// build does what "make build" does.
func build(t *testing.T, bin string) {
	t.Helper()
	for _, command := range [][]string{
		{"build", "-o", bin + "/", "./hosts/pgherd", "./hosts/svc"},
		{"run", "./hosts/svc/manual", filepath.Join(bin, "share")},
	} {
		run := exec.CommandContext(t.Context(), "go", command...)
		run.Dir = "../.."
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// inside runs the test again after a few commands, for so long at most, with what the kernel gives to the process.
func inside(t *testing.T, root, limit string, attributes *syscall.SysProcAttr, before string) {
	t.Helper()
	const again = ` && exec "$0" -test.v -test.timeout "$2" "-test.run=^$3\$"`
	run := exec.CommandContext(t.Context(), "/bin/sh", "-c", before+again, os.Args[0], root, limit, t.Name())
	attributes.Pdeathsig = syscall.SIGKILL
	var out bytes.Buffer
	run.Env, run.SysProcAttr, run.Stdout, run.Stderr = append(os.Environ(), insideVariable+"="+root), attributes, &out, &out
	if testing.Verbose() {
		both := io.MultiWriter(&out, os.Stdout)
		run.Stdout, run.Stderr = both, both
	}
	check.NoError(t, launch(newLauncher(), run))
	if err := run.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, &out)
	}
}

const nobody = 65534

// handOver gives everything to nobody, and this program too, which stands where nobody else may look for it.
func handOver(t *testing.T, root string) {
	t.Helper()
	program := filepath.Join(root, "install.test")
	check.NoError(t, os.WriteFile(program, check.Must(os.ReadFile(os.Args[0]))(t), 0o755))
	os.Args[0] = program
	check.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
}

// openFolder makes a folder that every user can enter: the machines' users are several.
func openFolder(t *testing.T) string {
	t.Helper()
	root := check.Must(os.MkdirTemp("", "pgherd-install-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	check.NoError(t, errors.Join(os.Chmod(root, 0o755), os.MkdirAll(filepath.Join(root, "source", "bin"), 0o755)))
	if strings.ContainsAny(root, " '\"") {
		t.Fatalf("the page's commands do not run in %q: choose another TMPDIR", root)
	}
	return root
}
