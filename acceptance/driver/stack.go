package driver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// real is a whole service of real processes: two PostgreSQLs, PgBouncer, the agent, two API hosts and a batch host, all started
// from the program as it is built.
type real struct {
	*ground
	env     []string
	secrets *secrets
	agent   *child
	batch   *child
	apis    []*child
	bases   []string
}

var theStack struct {
	once  sync.Once
	real  *real
	err   error
	close func()
}

// Stack is the world of real processes. All scenarios of a test binary share it; StopStack ends it.
func Stack(t testing.TB) spec.World {
	t.Helper()
	theStack.once.Do(func() { theStack.real, theStack.err = startStack() })
	if theStack.err != nil {
		t.Fatal("the service did not start: ", theStack.err)
	}
	return theStack.real.world()
}

// StopStack ends the world of real processes, if there is one. The error says what did not stop, or which log holds a secret.
func StopStack() error {
	r := theStack.real
	if r == nil {
		return nil
	}
	err := r.stop()
	err = errors.Join(err, r.secrets.inLogs(r.dir))
	theStack.close()
	return errors.Join(err, os.RemoveAll(r.dir))
}

func startStack() (*real, error) {
	dir, err := os.MkdirTemp("", "pgherd-stack-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	theStack.close = cancel
	g, err := raise(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &real{ground: g, secrets: &secrets{}}
	return r, r.start(ctx)
}

func (r *real) start(ctx context.Context) error {
	agentSecret := rand.Text()
	r.secrets.add(agentSecret)
	r.env = []string{
		"PGHERD_METADATA_URL=" + r.metadataURL, "PGHERD_KEYRING_FILE=" + r.path("keyring"),
		"PGHERD_SERVER_URL=" + r.server.URL("postgres"), "PGHERD_AGENT_SECRET=" + agentSecret,
		"PGHERD_CREDENTIALS_FILE=" + r.path("credentials"),
	}
	for _, args := range [][]string{{"migrate"}, {"admin", "secrets", "init"}, {"agent", "init"}} {
		if _, err := run("", r.program, r.env, args...); err != nil {
			return err
		}
	}
	addresses, err := freeAddresses(2 + 2*apiHosts)
	if err != nil {
		return err
	}
	if err := r.startAgent(ctx, addresses[0], agentSecret); err != nil {
		return err
	}
	if err := r.startHosts(addresses[1:]); err != nil {
		return err
	}
	return operator{r}.admin(nil, "server", "add", "--name", "main", "--agent-url", "https://"+addresses[0],
		"--agent-ca-file", r.ca.CertFile(), "--public-host", publicHost, "--public-port", strconv.Itoa(r.poolerPort))
}

// startAgent starts the agent, then PgBouncer on its files.
func (r *real) startAgent(ctx context.Context, address, secret string) error {
	args, err := r.agentArguments(address)
	if err != nil {
		return err
	}
	ready, err := r.agentReady(address, secret)
	if err != nil {
		return err
	}
	r.agent = &child{
		name: "agent", program: r.program, args: args, env: r.env, logFile: r.path("agent.log"), ready: ready,
	}
	if err := r.agent.start(); err != nil {
		return err
	}
	return r.startPooler(ctx)
}

func (r *real) agentArguments(address string) ([]string, error) {
	own, err := r.ca.Issue("agent", loopback)
	if err != nil {
		return nil, err
	}
	public, err := r.ca.Issue("pooler", publicHost, loopback)
	if err != nil {
		return nil, err
	}
	sockets, err := cluster.SocketDir(r.path("socket"))
	if err != nil {
		return nil, err
	}
	args := []string{
		"agent", "--listen", address, "--tls-cert-file", own.CertFile, "--tls-key-file", own.KeyFile,
		"--postgres-host", r.server.Host(), "--postgres-port", strconv.Itoa(r.server.Port()),
		"--pooler-dir", r.path("pooler"), "--pooler-socket-dir", sockets, "--pooler-listen", loopback,
		"--pooler-port", strconv.Itoa(r.poolerPort), "--pooler-tls-cert-file", public.CertFile,
		"--pooler-tls-key-file", public.KeyFile, "--backup-dir", r.path("backups"), "--pg-dump", r.tools.PgDump,
		"--data-dir", r.dir,
	}
	user, err := poolerUser()
	return append(args, user...), err
}

// agentReady asks for the size of no database: the agent says that there is none as soon as it is in charge of the server.
func (r *real) agentReady(address, secret string) (func() bool, error) {
	pem, err := os.ReadFile(r.ca.CertFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the certificate authority has no certificate")
	}
	client := http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	request, err := http.NewRequest(http.MethodGet, "https://"+address+"/v1/databases/00000000-0000-4000-8000-000000000000/size", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	return func() bool {
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close() // only the status counts
		return response.StatusCode == http.StatusNotFound
	}, nil
}

// startHosts starts the API hosts and the batch host.
func (r *real) startHosts(addresses []string) error {
	ops := addresses[0]
	r.batch = &child{
		name: "batch", program: r.program, args: []string{"batch", "--ops-listen", ops}, env: r.env,
		logFile: r.path("batch.log"), ready: isReady(ops),
	}
	if err := r.batch.start(); err != nil {
		return err
	}
	for i := range apiHosts {
		listen, ops := addresses[1+2*i], addresses[2+2*i]
		api := &child{
			name: "api", program: r.program, env: r.env, logFile: r.path(fmt.Sprintf("api%d.log", i)), ready: isReady(ops),
			args: []string{
				"api", "--listen", listen, "--ops-listen", ops, "--trusted-proxies", "127.0.0.0/8",
				"--rate-limits", fmt.Sprintf("read=100000/1m,write=%d/1m,create=10000/1m", writesAMinute),
			},
		}
		if err := api.start(); err != nil {
			return err
		}
		r.apis, r.bases = append(r.apis, api), append(r.bases, "http://"+listen)
	}
	return nil
}

// isReady asks a host's operations listener.
func isReady(ops string) func() bool {
	client := http.Client{Timeout: 5 * time.Second}
	return func() bool {
		response, err := client.Get("http://" + ops + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close() // only the status counts
		return response.StatusCode == http.StatusOK
	}
}

func (r *real) world() spec.World {
	apps := applications{r: r, restores: &restores}
	w := spec.World{
		Operator: operator{r}, Connect: apps.connect, Restore: apps.restore, Pass: time.Sleep, Batch: realBatch{r.batch},
		HoldBackup: apps.holdBackup, Spoil: apps.spoil, Agent: realAgent{r.agent}, Writes: writesAMinute, SQL: apps,
	}
	for _, base := range r.bases {
		host := newWire(base)
		w.Hosts, w.Wire = append(w.Hosts, host.host), table{host}
	}
	return w
}

var restores atomic.Int64

// stop ends all processes, the hosts first.
func (r *real) stop() (err error) {
	for _, c := range append(r.apis, r.batch, r.agent) {
		if c != nil {
			err = errors.Join(err, c.stop())
		}
	}
	return errors.Join(err, r.ground.stop(context.Background()))
}

type realBatch struct{ *child }

// Start implements spec.Batch.
func (b realBatch) Start() error { return b.start() }

// Stop implements spec.Batch.
func (b realBatch) Stop() error { return b.stop() }

type realAgent struct{ *child }

// Start implements spec.Agent.
func (a realAgent) Start() error { return a.start() }

// Stop implements spec.Agent.
func (a realAgent) Stop() error { return a.stop() }

// SetFull implements spec.Agent: the agent starts again, and is to leave more room free than there is.
func (a realAgent) SetFull(full bool) error {
	if err := a.stop(); err != nil {
		return err
	}
	if full {
		return a.start("--backup-reserve", strconv.FormatInt(1<<60, 10))
	}
	return a.start()
}
