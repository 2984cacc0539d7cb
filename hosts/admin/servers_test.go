package admin_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	agentserver "github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"

// agentStub has the agent's own listener, over a server of which it says what the test wants.
type agentStub struct {
	installation string
	idle         error
	down         error // of PostgreSQL
	poolerDown   bool
	secrets      atomic.Pointer[[]string]
}

type stubCommands struct{ *agentStub }

func (stubCommands) Execute(context.Context, protocol.Command) (json.RawMessage, error) {
	return nil, command.Refuse(command.ReasonUnavailable, "not here")
}
func (s stubCommands) Connections(context.Context) (int, error)         { return 83, s.down }
func (s stubCommands) Installation(context.Context) (string, error)     { return s.installation, s.down }
func (s stubCommands) CollectsStatements(context.Context) (bool, error) { return true, s.down }
func (stubCommands) Report() protocol.Health                            { return protocol.Health{} }

func (stubCommands) ReportWithClients(context.Context) protocol.Health { return protocol.Health{} }

func newStub(installation string) *agentStub {
	a := &agentStub{installation: installation}
	a.accept(agentSecret)
	return a
}

func (a *agentStub) accept(secrets ...string) { a.secrets.Store(&secrets) }

// serve returns the agent's URL. Its certificate is for 127.0.0.1 alone.
func (a *agentStub) serve(t *testing.T, ca *cluster.CA) string {
	t.Helper()
	files := check.Must(ca.Issue("agent", "127.0.0.1"))(t)
	pair := check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	s := check.Must(agentserver.New(agentserver.Config{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Secrets:     func() []string { return *a.secrets.Load() }, Version: "dev", Commands: stubCommands{a},
		Health: stubCommands{a}, Programs: func() []command.Program { return nil },
		InCharge: func() error { return a.idle }, Confirmed: func() error { return a.idle },
		PoolerAnswers: func() bool { return !a.poolerDown }, Log: zap.NewNop(),
		Refusal: func(err error) *command.Refusal { return command.Refuse(command.ReasonUnavailable, "%s", err) },
	}))(t)
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		check.NoError(t, <-ended)
	})
	return "https://" + l.Addr().String()
}

// adding are the arguments that register a server, without its secret.
func adding(url, ca string, more ...string) []string {
	return append([]string{
		"server", "add", "--name=db1", "--agent-url=" + url, "--agent-ca-file=" + ca, "--public-host=127.0.0.1", "--public-port=1",
	}, more...)
}

// Each wrong set-up ends in one line that names the setting and the host, and says what to do; nothing is registered.
func TestAnAgentThatCannotBeWorkedWithIsNotRegistered(t *testing.T) {
	c := newConsole(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	another := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	stub := newStub("there")
	well := stub.serve(t, ca)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	files := check.Must(ca.Issue("other", "127.0.0.1"))(t)
	older := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(command.Capabilities{Version: "v0", Protocol: command.Protocol - 1})
	}))
	defer older.Close()
	older.TLS.Certificates[0] = check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	other.TLS.Certificates[0] = check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	check.NoError(t, os.WriteFile(empty, nil, 0o600))
	caKey := filepath.Join(filepath.Dir(ca.CertFile()), "ca.key")
	secret := "--agent-secret=" + agentSecret
	changed := func(change func(*agentStub)) string {
		a := newStub("there")
		change(a)
		return a.serve(t, ca)
	}
	with := func(url string, more ...string) []string {
		return adding(url, ca.CertFile(), append([]string{secret}, more...)...)
	}
	for name, w := range map[string]struct {
		args []string
		says string // texts, with a bar between them
	}{
		"wrong secret": {with(well, secret+"0"), "agentSecret|" + well + "|PGHERD_AGENT_SECRET_FILE"},
		"weak secret":  {with(well, "--agent-secret=0123456789abcdef"), "agentSecret|openssl rand -hex 32"},
		"no secret":    {adding(well, ca.CertFile()), "agentSecret|openssl rand -hex 32"},
		"another CA":   {with(well, "--agent-ca-file="+another.CertFile()), "agentCaFile|" + well + "|give the CA"},
		"no CA":        {with(well, "--agent-ca-file="+empty), "agentCaFile|" + empty + "|no certificate in PEM"},
		"a CA's key":   {with(well, "--agent-ca-file="+caKey), "agentCaFile|" + caKey + "|private key"},
		"endless":      {with(well, "--agent-ca-file=/dev/zero"), "agentCaFile|/dev/zero|more than 65536 bytes"},
		"no such file": {with(well, "--agent-ca-file="+empty+"x"), "agentCaFile|" + empty + "x|no such file"},
		"another name": {
			with(strings.Replace(well, "127.0.0.1", "localhost", 1)), "agentUrl|https://localhost|is for 127.0.0.1|use a name",
		},
		"refused":      {with("https://127.0.0.1:1"), "agentUrl|nothing listens at https://127.0.0.1:1|start|pgherd agent init"},
		"unknown name": {with("https://db1.invalid:8090"), "agentUrl|https://db1.invalid:8090|DNS"},
		"no TLS":       {with(strings.Replace(plain.URL, "http:", "https:", 1)), "agentUrl|does not speak TLS|own listener"},
		"no agent":     {with(other.URL), "agentUrl|" + other.URL + "|no agent|404|the agent's own listener"},
		"too old":      {with(older.URL), "agentUrl|v0 is too old|install"},
		"no PostgreSQL": {
			with(changed(func(a *agentStub) { a.down = io.EOF })), "agentUrl|cannot use it|agent init",
		},
		"not in charge":  {with(changed(func(a *agentStub) { a.idle = io.EOF })), "agentUrl|not in charge|agent init"},
		"no public port": {with(well, "--public-port=0"), "publicPort|1-65535"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := c.run(w.args...)
			if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), agentSecret) {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, text := range strings.Split(w.says, "|") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q lacks %q", err, text)
				}
			}
		})
	}
	if out, err := c.run("server", "list"); err != nil || out != "none\n" {
		t.Errorf("%v: %s", err, out)
	}
	c.does(adding(well, ca.CertFile(), secret)...)
	c.refuses("registered as db1 already", adding(changed(func(*agentStub) {}), ca.CertFile(), secret, "--name=db2")...)
	c.does(adding(changed(func(a *agentStub) { a.installation = "here" }), ca.CertFile(), secret, "--name=db2")...)
}

// pooler answers as PgBouncer does a client that wants TLS.
func pooler(t *testing.T, ca *cluster.CA, answer string, names ...string) (port string) {
	t.Helper()
	files := check.Must(ca.Issue("pooler", names...))(t)
	pair := check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { check.NoError(t, l.Close()) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 8))
			_, _ = io.WriteString(conn, answer)
			_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
			_ = conn.Close()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// A check says of each thing how it is, and fails where something is wrong.
func TestAServerIsChecked(t *testing.T) {
	c := newConsole(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	stub := newStub("there")
	public := pooler(t, ca, "S", "127.0.0.1")
	add := adding(stub.serve(t, ca), ca.CertFile(), "--agent-secret="+agentSecret, "--public-port="+public)
	of := "--server=" + text(t, c.does(add...), "serverId")
	if out, err := c.run("server", "check", of); err != nil || strings.Count(out, " ok ") < 10 || strings.Contains(out, "wrong") {
		t.Errorf("%v\n%s", err, out)
	}
	shown := c.does("server", "show", of)
	if shown["installation"] != "there" || shown["databases"] != 0.0 || shown["connections"] != 83.0 {
		t.Errorf("%v", shown)
	}
	c.does("server", "set", of, "--connections=90")
	stub.poolerDown = true
	out, err := c.run("server", "check", of, "--json")
	var list []map[string]any
	check.NoError(t, json.Unmarshal([]byte(out), &list))
	verdicts := map[any]any{}
	for _, f := range list {
		verdicts[f["check"]] = f["verdict"]
	}
	if err == nil || verdicts["PgBouncer"] != "wrong" || verdicts["connections"] != "notice" ||
		verdicts["public address"] != "notice" { // loopback
		t.Errorf("%v: %v", err, verdicts)
	}
	stub.poolerDown = false
	c.does("server", "set", of, "--public-port=1")
	if out, err := c.run("server", "check", of, "--json"); err != nil || !strings.Contains(out, "cannot be reached from here") {
		t.Errorf("%v\n%s", err, out) // only customers need to reach it
	}
	for port, says := range map[string]string{
		pooler(t, ca, "N", "127.0.0.1"):       "does not offer TLS",
		pooler(t, ca, "S", "db1.example.com"): "is for db1.example.com",
	} {
		c.does("server", "set", of, "--public-port="+port)
		if out, err := c.run("server", "check", of, "--json"); err == nil || !strings.Contains(out, says) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	c.does("server", "remove", of)
	c.refuses("no server is called", "server", "show", of)
}

// A secret is exchanged while the agent is used: no request is refused meanwhile, and afterwards the former secret is.
func TestASecretIsExchanged(t *testing.T) {
	c := newConsole(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	stub := newStub("there")
	url := stub.serve(t, ca)
	of := "--server=" + text(t, c.does(adding(url, ca.CertFile(), "--agent-secret="+agentSecret)...), "serverId")
	const fresh = "kX3vPq9ZtR5mWc7LbN2sDv"
	file := filepath.Join(t.TempDir(), "agent-secret")
	check.NoError(t, os.WriteFile(file, []byte(fresh+"\n"+agentSecret+"\n"), 0o600))
	set := []string{"server", "set", of, "--agent-secret-file=" + file}
	c.refuses("does not accept it", set...)
	accepted := func() bool {
		out, _ := c.run("server", "check", of)
		return strings.Contains(out, "accepted")
	}
	stub.accept(fresh, agentSecret)
	done, refused := make(chan struct{}), make(chan bool)
	go func() {
		lost := false
		for {
			select {
			case <-done:
				refused <- lost
				return
			default:
				lost = lost || !accepted()
			}
		}
	}()
	t.Setenv("PGHERD_AGENT_SECRET_FILE", filepath.Join(t.TempDir(), "of-another-command"))
	c.does("server", "set", of, "--capacity=7")
	c.does(set...)
	close(done)
	lost := <-refused // the last request that had the former secret has its answer
	stub.accept(fresh)
	if lost || !accepted() {
		t.Error("a request was refused")
	}
	stub.accept(agentSecret)
	if accepted() {
		t.Error("the former secret is still used")
	}
}
