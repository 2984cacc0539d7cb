package crash_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// line is a way to the agent that can be held: what is sent meanwhile arrives when it is released, however late.
type line struct {
	url, target string
	waiting     atomic.Int64
	gate        sync.RWMutex // held for writing while the line is
}

func newLine(t *testing.T, target string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // the test is over
	l := &line{url: "https://" + listener.Addr().String(), target: strings.TrimPrefix(target, "https://")}
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
	l.forward(to, from, func() {
		l.waiting.Add(1)
		l.gate.RLock()
		l.gate.RUnlock() //nolint:staticcheck // to have passed it is all
		l.waiting.Add(-1)
	})
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
	request func(t *testing.T, s *sleeper, host *stack.Host) (answer, error)
	// meanwhile is what others do.
	meanwhile func(t *testing.T, s *sleeper)
	// told is the status of the answer that the request has in the end.
	told int
}

// sleeper is the scene of one late request.
type sleeper struct {
	*shared
	w       *world
	host    *stack.Host
	line    *line
	role    roleAnswer
	body    roleBody
	current login // what gets in at the end; without a password where nobody does
	dead    []login
}

// changed says that a password is dead, and which one took its place; empty for none.
func (s *sleeper) changed(password string) {
	s.dead = append(s.dead, s.current)
	s.current = s.current.with(password)
}

func (s *sleeper) ask(t *testing.T, host *stack.Host, key, kind string) (answer, error) {
	t.Helper()
	body := changeBody{Kind: kind, ConfirmDisconnect: true}
	return s.user.try(soon(t), host, http.MethodPost, s.rolePath(s.role.RoleID, "/changes"), key, body)
}

// finish has another host carry out a change.
func (s *sleeper) finish(t *testing.T, key, kind string) {
	t.Helper()
	a, err := s.ask(t, s.w.api, key, kind)
	noError(t, err)
	a.is(t, http.StatusOK)
	if kind == "revoke" {
		s.changed("")
		return
	}
	s.changed(s.reveal(t, s.w.api, s.role.RoleID).Password)
}

func (s *sleeper) rotateRuntime(t *testing.T, host *stack.Host, key string) (answer, error) {
	t.Helper()
	return s.user.try(soon(t), host, http.MethodPost, s.path("/managed-roles/runtime/rotate"), key, disconnect)
}

func (s *sleeper) finishRuntime(t *testing.T, key string) {
	t.Helper()
	a, err := s.rotateRuntime(t, s.w.api, key)
	noError(t, err)
	a.is(t, http.StatusOK)
	s.changed(s.runtime(t).Password)
}

func (s *sleeper) runtime(t *testing.T) roleAnswer {
	t.Helper()
	a := s.user.do(t, s.w.api, http.MethodPost, s.path("/managed-roles/runtime/credentials"), "", nil)
	return read[roleAnswer](t, a.is(t, http.StatusOK))
}

// halfMade leaves a role that only has to be admitted.
func halfMade(t *testing.T, s *sleeper) {
	t.Helper()
	half := stepFlow{step: "admit", makeRoleFlow: makeRoleFlow{shared: s.shared}}
	half.ready(t, s.w)
	delete(s.w.unfinished, half.role.RoleID)
	s.role, s.body = half.role, half.body
}

func (s *sleeper) admit(t *testing.T, host *stack.Host) (answer, error) {
	t.Helper()
	return s.user.try(soon(t), host, http.MethodPost, s.rolePath(s.role.RoleID, "/admit"), "", nil)
}

func askAdmission(t *testing.T, s *sleeper, host *stack.Host) (answer, error) {
	t.Helper()
	return s.admit(t, host)
}

func madeRole(t *testing.T, s *sleeper) {
	t.Helper()
	s.role = s.makeRole(t, s.w)
	s.current = s.role.login()
}

func askFor(kind string) func(*testing.T, *sleeper, *stack.Host) (answer, error) {
	return func(t *testing.T, s *sleeper, host *stack.Host) (answer, error) {
		t.Helper()
		return s.ask(t, host, "held "+s.role.RoleID, kind)
	}
}

var lateRequests = []late{
	{"rotation, then another", madeRole, askFor("rotate"), func(t *testing.T, s *sleeper) {
		s.finish(t, "held "+s.role.RoleID, "rotate")
		s.finish(t, newName("later"), "rotate")
	}, http.StatusOK},
	{"rotation, then a revocation", madeRole, askFor("rotate"), func(t *testing.T, s *sleeper) {
		s.finish(t, "held "+s.role.RoleID, "rotate")
		s.finish(t, newName("later"), "revoke")
	}, http.StatusOK},
	{"rotation, then a removal", madeRole, askFor("rotate"), func(t *testing.T, s *sleeper) {
		s.finish(t, "held "+s.role.RoleID, "rotate")
		s.remove(t, s.w, s.role.RoleID)
		s.changed("")
	}, http.StatusOK},
	{"removal, then a new role", madeRole, func(t *testing.T, s *sleeper, host *stack.Host) (answer, error) {
		return s.user.try(soon(t), host, http.MethodPost, s.rolePath(s.role.RoleID, "/delete"), "", confirmed)
	}, func(t *testing.T, s *sleeper) {
		s.remove(t, s.w, s.role.RoleID)
		s.changed("")
		s.current = s.makeRole(t, s.w).login()
	}, http.StatusOK},
	{"rotation of runtime, then another", func(t *testing.T, s *sleeper) {
		s.current = s.runtime(t).login()
	}, func(t *testing.T, s *sleeper, host *stack.Host) (answer, error) {
		return s.rotateRuntime(t, host, "held")
	}, func(t *testing.T, s *sleeper) {
		s.finishRuntime(t, "held")
		s.finishRuntime(t, newName("later"))
	}, http.StatusOK},
	{"preparation, then a removal", func(_ *testing.T, s *sleeper) {
		s.body = newRole()
	}, func(t *testing.T, s *sleeper, host *stack.Host) (answer, error) {
		return s.user.try(soon(t), host, http.MethodPost, s.path("/custom-roles"), s.body.DisplayName, s.body)
	}, func(t *testing.T, s *sleeper) {
		r, found := s.find(t, s.w.api, s.body.DisplayName)
		if !found || r.Status != "reserved" {
			t.Fatalf("the role is %+v", r)
		}
		s.remove(t, s.w, r.RoleID)
	}, http.StatusNotFound},
	{"admission, then a removal", halfMade, askAdmission, func(t *testing.T, s *sleeper) {
		s.remove(t, s.w, s.role.RoleID)
	}, http.StatusNotFound},
	{"admission, then a revocation", halfMade, askAdmission, func(t *testing.T, s *sleeper) {
		a, err := s.admit(t, s.w.api)
		noError(t, err)
		a.is(t, http.StatusOK)
		s.current = s.reveal(t, s.w.api, s.role.RoleID).login()
		s.finish(t, newName("later"), "revoke")
	}, http.StatusConflict},
}

// A host that slept over the end of its work, and over what came after, changes nothing when it wakes; nor does its command
// when it arrives at last.
func TestLateRequestsUndoNothing(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	host, err := w.StartAPI(soon(t), "")
	noError(t, err)
	h, l := &shared{}, newLine(t, w.AgentURL())
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
	h := *s.shared
	h.user.do(t, s.host, http.MethodPost, h.path("/managed-roles/readonly/rotate"), newName("first"), disconnect).
		is(t, http.StatusOK) // a command, so that a connection is open that carries another
	s.line.gate.Lock()
	told := make(chan struct{})
	go func() {
		defer close(told)
		if a, err := c.request(t, s, s.host); err != nil || a.status != c.told {
			t.Errorf("who asked the sleeper was told %d %s, %v", a.status, a.text, err)
		}
	}()
	eventually(t, "the command is on its way", func() (bool, string) { return s.line.waiting.Load() > 0, "nothing came" })
	noError(t, s.host.Freeze())
	s.routed(t, w.AgentURL())
	c.meanwhile(t, s)
	w.settled(t)
	before, heard := w.standing(t), w.commands(t)
	noError(t, s.host.Thaw())
	s.line.gate.Unlock()
	<-told
	if now := w.commands(t); now != heard+1 {
		t.Errorf("the agent has heard %d commands after the sleep", now-heard)
	}
	if after := w.standing(t); after != before {
		t.Errorf("the sleeper changed\n%s\nto\n%s", before, after)
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

// routed makes the control plane reach the agent at a URL from now on.
func (s *sleeper) routed(t *testing.T, url string) {
	t.Helper()
	_, err := s.w.meta.ExecContext(soon(t), "UPDATE servers SET agent_url = $1", url)
	noError(t, err)
}

// isStale fails the test unless the agent refuses an earlier generation's change of the login that gets in.
func (s *sleeper) isStale(t *testing.T) {
	t.Helper()
	const password = "of an earlier generation"
	_, err := ports.Do(soon(t), s.w.client(t), ports.Fence{OperationID: "44444444-4444-4444-8444-444444444444"}, command.ChangeLogin{
		DatabaseID: id.DatabaseID(s.db.ID), Username: s.current.username, Generation: 1, Want: role.Rotation,
		CredentialGeneration: 9, Verifier: credential.Verifier(password, [16]byte{}, credential.Iterations),
		NewPassword: password,
	})
	if !command.RefusedFor(err, command.ReasonStale) {
		t.Errorf("the agent answers an earlier generation: %v", err)
	}
	s.w.getsIn(t, s.current)
}

// commands counts those that the agent has heard.
func (w *world) commands(t *testing.T) int {
	t.Helper()
	text, err := w.agent.Log()
	noError(t, err)
	return strings.Count(string(text), `"msg":"request","kind":"login.`)
}

// standing is all that metadata, ledger and servers say of logins.
func (w *world) standing(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(w.records(t),
		rows(t, w.meta, `SELECT (SELECT json_agg(r ORDER BY id) FROM roles r)::text,
			(SELECT json_agg(c ORDER BY id) FROM role_changes c)::text,
			(SELECT json_agg(l ORDER BY username) FROM database_logins l)::text`),
		rows(t, w.maintenance, `SELECT (SELECT json_agg(r ORDER BY name) FROM ledger.role r)::text,
			(SELECT json_agg(c ORDER BY operation_id, step) FROM ledger.command c WHERE result IS NOT NULL)::text,
			(SELECT json_agg(g ORDER BY login) FROM pooler.gate g)::text`),
		rows(t, w.server, "SELECT json_agg(a ORDER BY oid)::text FROM pg_authid a"), w.poolerLines(t))
}
