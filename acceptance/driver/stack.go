package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// batchHosts is how many batch hosts the real service has: they share the queue.
const batchHosts = 2

// realService is a whole service of real processes: two PostgreSQLs, PgBouncer, an object store, the agent, two API hosts and two
// batch hosts. Stories that move databases have another database server beside it.
type realService struct {
	*stack.Stack
	second   *stack.Stack // nil until a story has asked for it
	objects  *objectstore.Server
	dir      string
	secrets  *secrets
	agent    *realAgent
	batch    realBatch
	apis     []*stack.Host
	restores atomic.Int64
	// qualified has the extensions of the server tried, once.
	qualified func() error
}

var theStack struct {
	once sync.Once
	real *realService
	err  error
}

// Stack is the world of real processes. All scenarios of a test binary share it; StopStack ends it.
func Stack(t testing.TB) spec.World {
	t.Helper()
	theStack.once.Do(func() { theStack.err = startStack() })
	if theStack.err != nil {
		t.Fatal("the service did not start: ", theStack.err)
	}
	return theStack.real.world()
}

// StackFiles are what a process needs to be one of the service of Stack: the URL of the metadata, and the key ring.
func StackFiles() (metadataURL, keyringFile string) {
	return theStack.real.MetadataURL(), theStack.real.KeyringFile()
}

// StackCAFile has the authority that the pooler of Stack shows a certificate of.
func StackCAFile() string { return theStack.real.CAFile() }

// StopStack ends the world of real processes, if there is one. The error says what the doctor has found in it, what did not stop,
// or which log holds a secret.
func StopStack() error {
	r := theStack.real
	if r == nil {
		return nil
	}
	var err error
	if r.Stack != nil {
		r.secrets.add(realArchive{r}.key())
		err = r.healthy()
		if r.second != nil {
			err = errors.Join(err, r.second.Stop())
		}
		err = errors.Join(err, r.Stop(), r.secrets.inLogs(r.dir))
	}
	if r.objects != nil {
		r.objects.Kill()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// healthy asks the doctor, once the service has come up.
func (r *realService) healthy() error {
	if len(r.batch) < batchHosts {
		return nil
	}
	ctx, cancel := soon()
	defer cancel()
	err := stack.Healthy(ctx, r)
	if r.second != nil {
		err = errors.Join(err, stack.Healthy(ctx, r.second))
	}
	return err
}

// waitTime bounds a start and a stop of any part.
const waitTime = 2 * time.Minute

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waitTime)
}

func startStack() error {
	dir, err := os.MkdirTemp("", "pgherd-stack-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // the programs' user goes through
	}
	if err != nil {
		return err
	}
	r := &realService{dir: dir, secrets: &secrets{}}
	r.qualified = sync.OnceValue(func() error {
		ctx, cancel := soon()
		defer cancel()
		return r.QualifyExtensions(ctx)
	})
	theStack.real = r
	binary, err := stack.Build(context.Background(), "pgherd") // on a busy machine it takes minutes
	if err != nil {
		return err
	}
	ctx, cancel := soon()
	defer cancel()
	if r.objects, err = objectstore.Open(filepath.Join(dir, "objects")); err != nil {
		return err
	}
	r.secrets.add(objectstore.SecretKey)
	o := stack.Options{
		Binary: binary, Dir: filepath.Join(dir, "state"), TemplateDir: clustertest.TemplateDir(), InvitationURL: spec.InvitationPage,
		AgentFlags: r.objects.Flags("server"), BlobDir: r.objects.Blobs("server"), Archive: true,
	}
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	if r.Stack, err = stack.Start(ctx, o); err != nil {
		return err
	}
	r.agent = &realAgent{stack: r.Stack, process: r.FirstAgent(), objects: r.objects}
	_, held := query(r.MetadataURL(), statementTime, holdSetups)
	return errors.Join(held, r.startHosts(ctx), r.knowPasswords(r.Stack))
}

func (r *realService) startHosts(ctx context.Context) error {
	limits := fmt.Sprintf("write=%d/1m,create=10000/1m,unauthorized=30/1m", writesAMinute)
	for range apiHosts {
		h, err := r.StartAPI(ctx, "", "--rate-limits", limits, "--trusted-proxies", "127.0.0.0/8")
		if err != nil {
			return err
		}
		r.apis = append(r.apis, h)
	}
	for range batchHosts {
		h, err := r.StartBatch(ctx, "")
		if err != nil {
			return err
		}
		r.batch = append(r.batch, h)
	}
	return nil
}

// knowPasswords remembers the platform's own passwords, to look for them in the logs.
func (r *realService) knowPasswords(of *stack.Stack) error {
	c, err := setup.ReadCredentials(of.CredentialsFile())
	for _, password := range []string{c.AgentPassword, c.PoolerPassword, c.PoolerAdminPassword} {
		r.secrets.add(password)
	}
	return err
}

func (r *realService) world() spec.World {
	apps := applications{r}
	w := spec.World{
		Routes: routes(), Operator: realOperator{r}, Connect: apps.connect, Restore: apps.restore, Pass: time.Sleep, Batch: r.batch,
		HoldBackup: apps.holdBackup, Spoil: apps.spoil, Predate: r.predate, Rot: r.rot,
		AskUsage: r.askUsage,
		OnServer: onServer{apps}, Agent: r.agent, Writes: writesAMinute, SQL: apps,
		Outages: outages{r}, Mails: r.mails, Restores: true, Archive: realArchive{r},
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	for _, api := range r.apis {
		w.Hosts = append(w.Hosts, client(api.URL, remembering{transport, r.secrets}))
	}
	return w
}

// askUsage has the metadata say that nobody has asked for long.
func (r *realService) askUsage() error {
	_, err := query(r.MetadataURL(), statementTime, "UPDATE usage_taken SET asked_at = to_timestamp(0)")
	return err
}

// realBatch are the batch hosts.
type realBatch []*stack.Host

// Start implements spec.Batch.
func (b realBatch) Start() error {
	ctx, cancel := soon()
	defer cancel()
	for _, h := range b {
		if h.Running() {
			continue
		}
		if err := h.Restart(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements spec.Batch.
func (b realBatch) Stop() (err error) {
	ctx, cancel := soon()
	defer cancel()
	for _, h := range b {
		err = errors.Join(err, h.Stop(ctx))
	}
	return err
}

type realAgent struct {
	stack   *stack.Stack
	process *stack.Process
	objects *objectstore.Server
	away    bool // the object store is
}

// Start implements spec.Agent.
func (a *realAgent) Start() error { return a.start() }

func (a *realAgent) start(extra ...string) (err error) {
	if a.process.Running() {
		return nil
	}
	if a.process, err = a.stack.LaunchAgent("", extra...); err != nil {
		return err
	}
	ctx, cancel := soon()
	defer cancel()
	return a.stack.AwaitAgent(ctx, a.process)
}

// Stop implements spec.Agent.
func (a *realAgent) Stop() error {
	ctx, cancel := soon()
	defer cancel()
	return a.process.Stop(ctx)
}

// SetFull implements spec.Agent: the agent starts again, and is to leave more room free than there is.
func (a *realAgent) SetFull(full bool) error {
	if err := a.Stop(); err != nil {
		return err
	}
	if full {
		return a.start("--backup-reserve", strconv.FormatInt(1<<60, 10))
	}
	return a.start()
}

// SetAway implements spec.Agent: the object store is killed, and runs again.
func (a *realAgent) SetAway(away bool) (err error) {
	switch {
	case away:
		a.objects.Kill()
	case a.away:
		err = a.objects.Launch()
	}
	a.away = away
	return err
}
