package single

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// machine is the one that is set up. Tests have one that is a folder.
type machine struct {
	root     string // before all paths
	pgherd   string // this program
	out      io.Writer
	warnings io.Writer
	user     func(name string) (owner, error)
	run      func(context.Context, call) (string, error)
	version  func(ctx context.Context, path string) (floors.Version, error)
	resolve  func(ctx context.Context, host string) error
	answers  func(ctx context.Context, url string) error
	rename   func(from, to string) error

	ca      *cluster.CA // from the step that opens it on
	changes int         // so far
}

// say tells the operator something.
func (m *machine) say(format string, args ...any) error {
	_, err := fmt.Fprintf(m.out, "setup: "+format+"\n", args...)
	return err
}

// changed tells the operator what this run has done.
func (m *machine) changed(format string, args ...any) {
	m.changes++
	_, _ = fmt.Fprintf(m.out, "  "+format+"\n", args...)
}

// owner is a system user and its group.
type owner struct{ uid, gid int }

// call is a program that is run. A secret stands in its input or in a file, and never among its arguments.
type call struct {
	as    string   // system user; empty: the caller
	env   []string // beside PATH
	input string
	args  []string // the program first
}

// thisMachine is the one that the program runs on.
func thisMachine(out, warnings io.Writer) (*machine, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &machine{pgherd: program, out: out, warnings: warnings, user: systemUser, answers: answers, rename: os.Rename}
	m.run = m.runCall
	m.version = func(ctx context.Context, path string) (floors.Version, error) {
		nobody, err := m.user("nobody")
		if err != nil {
			return floors.Version{}, err
		}
		return floors.Find(ctx, path, nobody.credential())
	}
	m.resolve = func(ctx context.Context, host string) error {
		_, err := net.DefaultResolver.LookupHost(ctx, host)
		return err
	}
	return m, nil
}

func (m *machine) path(absolute string) string { return m.root + absolute }

func (m *machine) has(absolute string) bool {
	_, err := os.Stat(m.path(absolute))
	return err == nil
}

func systemUser(name string) (owner, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return owner{}, err
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	return owner{uid, gid}, errors.Join(uidErr, gidErr)
}

// credential is what a program runs as that runs as a user: without further groups.
func (o owner) credential() *syscall.Credential {
	return &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
}

// searched is the PATH of what is run, whatever the caller's is.
const searched = "/usr/sbin:/usr/bin:/sbin:/bin"

// runCall runs a program and returns what it prints. What it says on standard error belongs to the error or is a warning.
func (m *machine) runCall(ctx context.Context, c call) (string, error) {
	program := c.args[0]
	if !filepath.IsAbs(program) {
		program = "/usr/bin/" + program
	}
	cmd := exec.CommandContext(ctx, program, c.args[1:]...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=" + searched, "LC_ALL=C.UTF-8"}, c.env...)
	if c.as != "" {
		as, err := m.user(c.as)
		if err != nil {
			return "", err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	}
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.input), &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(c.args, " "), err, strings.TrimSpace(complaint.String()))
	}
	_, err := m.warnings.Write(complaint.Bytes())
	return strings.TrimSpace(out.String()), err
}

// readyTime is how long a host may take until it answers that it is ready.
const readyTime = time.Minute

// answers waits for an answer of a host that says that it is ready.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := ask(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w", err)
		}
	}
}

// direct asks this machine, whatever proxies the caller has set.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	got, err := direct.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	said, err := io.ReadAll(io.LimitReader(got.Body, 4096))
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", got.Status, said)
	}
	return err
}

// unnamed ends the name of a file that is not whole yet.
const unnamed = ".setup"

// put writes a file that has the old or the new content whatever happens, and that nobody but its owner reads before it has its
// mode. One that has this content already is left as it is.
func (m *machine) put(absolute, text string, of owner, mode os.FileMode) error {
	path := m.path(absolute)
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return nil
	}
	// What a run that was killed has left is in the same place, and goes.
	if err := os.Remove(path + unnamed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path+unnamed, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // of no use where it was not renamed
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chown(of.uid, of.gid), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = m.rename(f.Name(), path); err == nil {
		m.changed("wrote %s", absolute)
	}
	return err
}

// putNew is put where there is no file yet.
func (m *machine) putNew(absolute string, text func() string, of string) error {
	if m.has(absolute) {
		return nil
	}
	who, err := m.user(of)
	if err != nil {
		return err
	}
	return m.put(absolute, text(), who, 0o600)
}
