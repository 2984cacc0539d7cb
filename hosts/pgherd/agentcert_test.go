package main_test

import (
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestAgentsCertificate renews an agent's certificate, and exchanges the authority that it is known by as docs/operate/servers.md
// says, under calls that never stop: none fails.
func TestAgentsCertificate(t *testing.T) {
	t.Parallel()
	ctx := stacktest.Soon(t)
	s := stacktest.Start(ctx, t, stack.Options{TemplateDir: clustertest.TemplateDir()})
	a := newAgentsPair(t, s)
	calls := a.call(t)

	before := a.serial(t)
	a.put(t, issue(t, a.renewed(t), "agent"))
	check.Eventually(t, "nobody looks at the files", func() bool { return a.serial(t) != before })

	before = a.serial(t)
	other := issue(t, a.renewed(t), "agent")
	own := check.Must(os.ReadFile(a.in.CertFile))(t)
	replace(t, a.in.CertFile, check.Must(os.ReadFile(other.CertFile))(t))
	a.hangUp(t)
	check.Eventually(t, "a pair that does not fit is passed over in silence", func() bool {
		return strings.Contains(string(check.Must(s.FirstAgent().Log())(t)), "a renewed certificate cannot be used")
	})
	if a.serial(t) != before {
		t.Error("a certificate is served without its key")
	}
	replace(t, a.in.CertFile, own)

	fresh := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "fresh")))(t)
	former := check.Must(os.ReadFile(s.CAFile()))(t)
	next := check.Must(os.ReadFile(fresh.CertFile()))(t)
	if err := a.know(ctx, t, next); err == nil || !strings.Contains(err.Error(), "agentCaFile") {
		t.Errorf("an authority is taken that has not signed what the agent serves: %v", err)
	}
	check.NoError(t, a.know(ctx, t, append(append([]byte{}, former...), next...)))
	before = a.serial(t)
	a.put(t, check.Must(fresh.Issue("agent", stack.PublicHost, "127.0.0.1"))(t))
	a.hangUp(t)
	check.Eventually(t, "the agent does not serve its new certificate", func() bool { return a.serial(t) != before })
	check.NoError(t, a.know(ctx, t, next))
	if err := a.know(ctx, t, former); err == nil {
		t.Error("the former authority is taken again")
	}
	calls.end(t)
}

// agentsPair is the certificate of an agent, and how it is reached.
type agentsPair struct {
	stack *stack.Stack
	in    cluster.Certificate // the files that the agent looks at
	fleet *agentclient.Fleet

	mu    sync.RWMutex // held for reading during a call: none knows longer than that what was known before
	known server.Server
}

func newAgentsPair(t *testing.T, s *stack.Stack) *agentsPair {
	t.Helper()
	dir, box := filepath.Dir(s.CAFile()), fakebox.New()
	record := server.Server{
		ID: "33333333-3333-4333-8333-333333333333", AgentURL: s.AgentURL(), CA: string(check.Must(os.ReadFile(s.CAFile()))(t)),
	}
	record.SealedSecret = check.Must(box.Seal([]byte(s.AgentSecret()), record.SecretContext()))(t)
	a := &agentsPair{
		stack: s, fleet: agentclient.New(box, agentclient.Options{}),
		in: cluster.Certificate{CertFile: filepath.Join(dir, "agent.crt"), KeyFile: filepath.Join(dir, "agent.key")},
	}
	a.known = record
	t.Cleanup(a.fleet.Close)
	return a
}

// renewed is a folder where the stack's authority issues another certificate.
func (a *agentsPair) renewed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		text := check.Must(os.ReadFile(filepath.Join(filepath.Dir(a.stack.CAFile()), name)))(t)
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// put puts a pair where the agent looks for its own, one file after the other.
func (a *agentsPair) put(t *testing.T, pair cluster.Certificate) {
	t.Helper()
	replace(t, a.in.KeyFile, check.Must(os.ReadFile(pair.KeyFile))(t))
	replace(t, a.in.CertFile, check.Must(os.ReadFile(pair.CertFile))(t))
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	check.NoError(t, os.WriteFile(path+".new", text, 0o600))
	check.NoError(t, cluster.Own(path+".new"))
	check.NoError(t, os.Rename(path+".new", path))
}

func (a *agentsPair) hangUp(t *testing.T) {
	t.Helper()
	check.NoError(t, syscall.Kill(a.stack.FirstAgent().Pid(), syscall.SIGHUP))
}

// serial is that of the certificate that the agent serves, which the record trusts.
func (a *agentsPair) serial(t *testing.T) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.known.CA))
	return wayIn{"agent", strings.TrimPrefix(a.stack.AgentURL(), "https://"), handshake}.serial(t, roots)
}

// know has an operator's command, and then the calls, know the agent by other authorities.
func (a *agentsPair) know(ctx context.Context, t *testing.T, authorities []byte) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authorities.pem")
	check.NoError(t, os.WriteFile(file, authorities, 0o644))
	if _, err := a.stack.Admin(ctx, "server", "set", "--server", a.stack.ServerID(), "--agent-ca-file", file); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.CA = string(authorities)
	return nil
}

// calling asks the agent again and again, several at a time.
type calling struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	asked   atomic.Int64
	failed  atomic.Pointer[error]
}

func (a *agentsPair) call(t *testing.T) *calling {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &calling{stop: stop}
	for range 4 {
		c.running.Go(func() {
			for ctx.Err() == nil {
				err := a.ask(context.WithoutCancel(ctx))
				c.asked.Add(1)
				if err != nil {
					c.failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	return c
}

func (a *agentsPair) ask(ctx context.Context) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	agent, err := a.fleet.Agent(a.known)
	if err == nil {
		_, err = ports.Ask(ctx, agent, command.AskCapabilities{})
	}
	return err
}

func (c *calling) end(t *testing.T) {
	t.Helper()
	c.stop()
	c.running.Wait()
	if err := c.failed.Load(); err != nil {
		t.Errorf("a call failed: %v", *err)
	}
	t.Logf("%d calls", c.asked.Load())
	if c.asked.Load() < 10 {
		t.Errorf("only %d calls were made", c.asked.Load())
	}
}
