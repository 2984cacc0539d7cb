package crash_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// line is a way to the agent that can be held: what is sent meanwhile arrives when it is released, however late.
type line struct {
	url, target string
	host        int          // the process ID of whose waiting commands are counted: the batch hosts ask for figures, too
	waiting     atomic.Int64 // commands of the host
	gate        sync.RWMutex // held for writing while the line is
}

func newLine(t *testing.T, target string, host int) *line {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() }) // the test is over
	l := &line{url: "https://" + listener.Addr().String(), target: strings.TrimPrefix(target, "https://"), host: host}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(conn)
		}
	}()
	return l
}

func (l *line) connect(from net.Conn) {
	to, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = from.Close()
		return
	}
	go l.forward(from, to, func() {})
	var one int64
	if has(l.host, from.RemoteAddr().(*net.TCPAddr).Port) {
		one = 1
	}
	l.forward(to, from, func() {
		l.waiting.Add(one)
		l.gate.RLock()
		l.gate.RUnlock() //nolint:staticcheck // to have passed it is all
		l.waiting.Add(-one)
	})
}

// has reports whether a process holds the socket of a connection from a port of this machine.
func has(pid, port int) bool {
	sockets, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	const local, inode = 1, 9 // columns
	for one := range strings.Lines(string(sockets)) {
		fields := strings.Fields(one)
		if !strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", port)) {
			continue
		}
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if slices.ContainsFunc(files, func(file string) bool {
			target, err := os.Readlink(file)
			return err == nil && target == "socket:["+fields[inode]+"]"
		}) {
			return true
		}
	}
	return false
}

// forward copies until either side ends, then ends both.
func (l *line) forward(to, from net.Conn, pass func()) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		pass()
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// late is a request whose command reaches the agent only after others have finished its work and gone on from there.
type late struct {
	name string
	// ready makes what the request needs.
	ready func(t *testing.T, s *sleeper)
	// request is what the host is asked that then sleeps; its command is held up.
	request func(t *testing.T, s *sleeper, host *stack.Host) error
	// meanwhile is what others do.
	meanwhile func(t *testing.T, s *sleeper)
	// told is the code with which the request is refused in the end; empty where it is done.
	told fault.Code
}

// sleeper is the scene of one late request.
type sleeper struct {
	*shared
	w       *world
	host    *stack.Host
	line    *line
	role    wire.RevealedRole
	body    wire.CreateRole
	current login // what gets in at the end; without a password where nobody does
	dead    []login
}

// changed says that a password is dead, and which one took its place; empty for none.
func (s *sleeper) changed(password string) {
	s.dead = append(s.dead, s.current)
	s.current = s.current.with(password)
}

var errPending = errors.New("it is pending")

// finished is an error also where the work is pending.
func finished(status role.ChangeStatus, err error) error {
	if err == nil && status != role.Completed {
		err = errPending
	}
	return err
}

func (s *sleeper) ask(t *testing.T, host *stack.Host, key string, kind role.Kind) error {
	t.Helper()
	change, err := s.change(soon(t), host, s.role.RoleID, key, kind)
	return finished(change.Status, err)
}

// finish has another host carry out a change.
func (s *sleeper) finish(t *testing.T, key string, kind role.Kind) {
	t.Helper()
	noError(t, s.ask(t, s.w.api, key, kind))
	if kind == role.Revocation {
		s.changed("")
		return
	}
	s.changed(s.reveal(t, s.w.api, s.role.RoleID).Password)
}

func (s *sleeper) rotateRuntime(t *testing.T, host *stack.Host, key string) error {
	t.Helper()
	rotation, err := s.rotateLogin(t, host, database.RuntimeLogin, key)
	return finished(rotation.Status, err)
}

func (s *sleeper) finishRuntime(t *testing.T, key string) {
	t.Helper()
	noError(t, s.rotateRuntime(t, s.w.api, key))
	s.changed(s.runtime(t).password)
}

func (s *sleeper) runtime(t *testing.T) login {
	t.Helper()
	r := must(s.user.at(s.w.api).Logins.Reveal(soon(t), s.db.ID, database.RuntimeLogin))(t)
	return login{r.Database, r.Username, r.Password}
}

// halfMade leaves a role that only has to be admitted.
func halfMade(t *testing.T, s *sleeper) {
	t.Helper()
	half := stepFlow{step: "admit", makeRoleFlow: makeRoleFlow{shared: s.shared}}
	half.ready(t, s.w)
	delete(s.w.unfinished, half.role.RoleID)
	s.role.Role, s.body = half.role.Role, half.body
}

func admit(t *testing.T, s *sleeper, host *stack.Host) error {
	t.Helper()
	_, err := s.user.at(host).Roles.Admit(soon(t), s.db.ID, s.role.RoleID)
	return err
}

func madeRole(t *testing.T, s *sleeper) {
	t.Helper()
	s.role = s.makeRole(t, s.w)
	s.current = loginOf(s.role)
}

func (s *sleeper) key() string { return "late " + string(s.role.RoleID) }

func askRotation(t *testing.T, s *sleeper, host *stack.Host) error {
	t.Helper()
	return s.ask(t, host, s.key(), role.Rotation)
}

var lateRequests = []late{
	{"rotation, then another", madeRole, askRotation, func(t *testing.T, s *sleeper) {
		s.finish(t, s.key(), role.Rotation)
		s.finish(t, newName("later"), role.Rotation)
	}, ""},
	{"rotation, then a revocation", madeRole, askRotation, func(t *testing.T, s *sleeper) {
		s.finish(t, s.key(), role.Rotation)
		s.finish(t, newName("later"), role.Revocation)
	}, ""},
	{"rotation, then a removal", madeRole, askRotation, func(t *testing.T, s *sleeper) {
		s.finish(t, s.key(), role.Rotation)
		s.remove(t, s.w, s.role.RoleID)
		s.changed("")
	}, ""},
	{"removal, then a new role", madeRole, func(t *testing.T, s *sleeper, host *stack.Host) error {
		got, err := s.tryDelete(t, host, s.role.RoleID)
		if got.Status == "pending" {
			err = errPending
		}
		return err
	}, func(t *testing.T, s *sleeper) {
		s.remove(t, s.w, s.role.RoleID)
		s.changed("")
		s.current = loginOf(s.makeRole(t, s.w))
	}, ""},
	{"rotation of runtime, then another", func(t *testing.T, s *sleeper) {
		s.current = s.runtime(t)
	}, func(t *testing.T, s *sleeper, host *stack.Host) error {
		return s.rotateRuntime(t, host, "late")
	}, func(t *testing.T, s *sleeper) {
		s.finishRuntime(t, "late")
		s.finishRuntime(t, newName("later"))
	}, ""},
	{"preparation, then a removal", func(_ *testing.T, s *sleeper) {
		s.body = newRole()
	}, func(t *testing.T, s *sleeper, host *stack.Host) error {
		_, err := s.tryMake(t, s.w, host, s.body)
		return err
	}, func(t *testing.T, s *sleeper) {
		r, found := s.find(t, s.w.api, s.body.DisplayName)
		if !found || r.Status != "reserved" {
			t.Fatalf("the role is %+v", r)
		}
		s.remove(t, s.w, r.RoleID)
	}, fault.RoleNotFound},
	{"admission, then a removal", halfMade, admit, func(t *testing.T, s *sleeper) {
		s.remove(t, s.w, s.role.RoleID)
	}, fault.RoleNotFound},
	{"admission, then a revocation", halfMade, admit, func(t *testing.T, s *sleeper) {
		noError(t, admit(t, s, s.w.api))
		s.current = loginOf(s.reveal(t, s.w.api, s.role.RoleID))
		s.finish(t, newName("later"), role.Revocation)
	}, fault.ManagedRoleConflict},
}

// A host that slept over the end of its work, and over what came after, changes nothing when it wakes; nor does its command
// when it arrives at last.
func TestLateRequestsUndoNothing(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	host := must(w.StartAPI(soon(t), ""))(t)
	h, l := &shared{}, newLine(t, w.AgentURL(), host.Pid())
	for _, c := range lateRequests {
		done := t.Run(c.name, func(t *testing.T) {
			h.open(t, w)
			c.run(t, &sleeper{shared: h, w: w, host: host, line: l})
		})
		if !done {
			t.Fatal("what this left would only confuse the next")
		}
	}
}

func (c late) run(t *testing.T, s *sleeper) {
	w := s.w
	c.ready(t, s)
	s.routed(t, s.line.url)
	rotation, err := s.rotateLogin(t, s.host, database.ReadonlyLogin, newName("first"))
	isDone(t, rotation.Status, err) // a command, so that a connection is open that carries another
	s.line.gate.Lock()
	told := make(chan error, 1)
	go func() { told <- c.request(t, s, s.host) }()
	eventually(t, "the command is on its way", func() (bool, string) { return s.line.waiting.Load() > 0, "nothing came" })
	w.sleeps(t, s.host.Process)
	s.routed(t, w.AgentURL())
	c.meanwhile(t, s)
	w.settled(t)
	before, heard := w.allOfLogins(t), w.commands(t)
	noError(t, s.host.Thaw())
	s.line.gate.Unlock()
	if err := <-told; codeOf(err) != c.told || c.told == "" && err != nil {
		t.Errorf("who asked the sleeper was told %v", err)
	}
	eventually(t, "the agent hears the late command", func() (bool, string) { // who woke may have answered before
		now := w.commands(t)
		return now == heard+1, fmt.Sprintf("%d commands after the sleep", now-heard)
	})
	if diff := cmp.Diff(before, w.allOfLogins(t)); diff != "" {
		t.Errorf("the sleeper changed (- to +):\n%s", diff)
	}
	w.settled(t)
	for _, l := range s.dead {
		w.staysOut(t, "a password of before", l)
	}
	if s.current.password != "" {
		w.getsIn(t, s.current)
		s.isStale(t)
	}
}

// sleeps halts a host between two transactions: the locks of one would hold up the others, whose requests then fail.
func (w *world) sleeps(t *testing.T, host *stack.Process) {
	t.Helper()
	const open = `SELECT pid FROM pg_stat_activity
		WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`
	eventually(t, "the host sleeps", func() (bool, string) {
		noError(t, host.Freeze())
		for range 10 { // the others' transactions end
			if host.Frozen() && len(column(t, w.meta, open)) == 0 {
				return true, ""
			}
			time.Sleep(20 * time.Millisecond)
		}
		noError(t, host.Thaw())
		return false, "it is in a transaction"
	})
}

// routed makes the control plane reach the agent at a URL from now on.
func (s *sleeper) routed(t *testing.T, url string) {
	t.Helper()
	must(s.w.meta.ExecContext(soon(t), "UPDATE servers SET agent_url = $1", url))(t)
}

// isStale fails the test unless the agent refuses an earlier generation's change of the login that gets in.
func (s *sleeper) isStale(t *testing.T) {
	t.Helper()
	const password = "of an earlier generation"
	_, err := ports.Do(soon(t), s.w.client(t), ports.Fence{OperationID: "44444444-4444-4444-8444-444444444444"}, command.ChangeLogin{
		DatabaseID: s.db.ID, Username: s.current.username, Generation: 1, Want: role.Rotation,
		CredentialGeneration: 9, Verifier: credential.Verifier(password, [16]byte{}, credential.Iterations),
		NewPassword: password,
	})
	if !command.RefusedFor(err, command.ReasonStale) {
		t.Errorf("the agent answers an earlier generation: %v", err)
	}
	s.w.getsIn(t, s.current)
}

var aboutLogin = regexp.MustCompile(`"msg":"request","server":"[^"]*","kind":"login\.`)

// commands counts those that the agent has heard.
func (w *world) commands(t *testing.T) int {
	t.Helper()
	return len(aboutLogin.FindAll(must(w.agent.Log())(t), -1))
}

// allOfLogins is all that metadata, ledger and servers say of logins.
func (w *world) allOfLogins(t *testing.T) [][]string {
	t.Helper()
	return slices.Concat(w.records(t),
		rows(t, w.meta, `SELECT (SELECT json_agg(r ORDER BY id) FROM roles r)::text,
			(SELECT json_agg(c ORDER BY id) FROM role_changes c)::text,
			(SELECT json_agg(l ORDER BY username) FROM database_logins l)::text`),
		rows(t, w.maintenance, `SELECT (SELECT json_agg(r ORDER BY name) FROM ledger.role r)::text,
			(SELECT json_agg(c ORDER BY operation_id, step) FROM ledger.command c WHERE result IS NOT NULL)::text,
			(SELECT json_agg(g ORDER BY login) FROM pooler.gate g)::text`),
		rows(t, w.server, "SELECT json_agg(a ORDER BY oid)::text FROM pg_authid a"), [][]string{w.poolerLines(t)})
}
