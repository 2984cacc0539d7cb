//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/acceptance/soak/machines"
	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/webhooks"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// elsewhere is a public address, of who receives webhooks and who issues tokens. In the soak's network it leads to the driver.
const elsewhere = "20.30.40.50"

// The room on the small disks, in bytes. A server has its databases and what it dumps and restores there; the store has backups
// and archives of both.
const (
	serverRoom = 3 << 30
	storeRoom  = 2 << 30
	metaRoom   = 1 << 30
)

// world is a whole service on machines of its own: two database servers, an object store, a server of the metadata, and two
// machines with a host of each kind.
type world struct {
	dir      string
	programs Programs
	network  *machines.Network
	machines map[plan.Part]*machines.Machine
	disks    map[plan.Part]*machines.Disk
	clocks   map[plan.Part]*machines.Clock
	services map[plan.Part]*service

	first, second    *stack.Stack // the second has no metadata of its own
	apis, dashboards []*stack.Host
	batches          []*stack.Host
	store            *objectstore.Server
	receiver         *webhooks.Receiver
	issuer           *oidcissuer.Issuer // of a CI system's tokens
	secrets          *model.Canaries
	http             *http.Client
	stop             context.CancelFunc
	supervised       []func()
}

// Programs are what is built once for a soak: pgherd with a clock that jumps, and svc.
type Programs struct {
	Pgherd string `json:"pgherd"`
	Svc    string `json:"svc"`
}

// newWorld starts everything, in a folder that every user can enter. end ends it, also where it has failed.
func newWorld(ctx context.Context, dir string, with Programs) (*world, error) {
	w := &world{
		dir: dir, programs: with, machines: map[plan.Part]*machines.Machine{}, disks: map[plan.Part]*machines.Disk{},
		clocks: map[plan.Part]*machines.Clock{}, services: map[plan.Part]*service{}, secrets: &model.Canaries{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	for _, step := range []func(context.Context) error{
		w.connect, w.startStore, w.startServers, w.startHosts, w.knowSecrets, w.supervise,
	} {
		if err := step(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

// connect makes the machines, with their networks, disks and clocks.
func (w *world) connect(context.Context) (err error) {
	if w.network, err = machines.NewNetwork(elsewhere); err != nil {
		return err
	}
	for _, name := range plan.Machines {
		if w.machines[name], err = w.network.Add(string(name)); err != nil {
			return err
		}
	}
	if err := w.nameMachines(); err != nil {
		return err
	}
	for name, room := range map[plan.Part]int64{"server1": serverRoom, "server2": serverRoom, "objects": storeRoom} {
		if w.disks[name], err = machines.NewDisk(w.path(name), room); err != nil {
			return err
		}
	}
	// The metadata are in a folder of the first server's stack.
	if w.disks["meta"], err = machines.NewDisk(filepath.Join(w.path("server1"), "metadata"), metaRoom); err != nil {
		return err
	}
	for _, name := range plan.Clocks {
		if w.clocks[name], err = machines.NewClock(w.path(name + ".clock")); err != nil {
			return err
		}
	}
	if w.receiver, err = webhooks.ListenAt(w.path("elsewhere"), elsewhere); err != nil {
		return err
	}
	w.issuer, err = oidcissuer.StartAt(w.path("elsewhere"), elsewhere)
	return err
}

func (w *world) path(name plan.Part) string { return filepath.Join(w.dir, string(name)) }

// domain is a machine's name.
func domain(name plan.Part) string { return string(name) + ".soak.test" }

// nameMachines has the driver find the machines by their names.
func (w *world) nameMachines() error {
	text := "127.0.0.1 localhost\n"
	for name, m := range w.machines {
		text += m.Address + " " + domain(name) + "\n"
	}
	file := filepath.Join(w.dir, "hosts")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, "")
}

// place is a machine as the stack takes it. Programs there go by the machine's clock, and trust who is elsewhere.
func (w *world) place(name plan.Part) stack.Place {
	m := w.machines[name]
	p := stack.Place{Address: m.Address, Name: domain(name), Start: m.Start}
	if c := w.clocks[name]; c != nil {
		p.Variables = append(p.Variables, machines.ClockVariable+"="+c.File)
	}
	p.Variables = append(p.Variables, "SSL_CERT_FILE="+w.receiver.CAFile)
	return p
}

// startStore starts the object store, which both servers have their backups and archives in.
func (w *world) startStore(context.Context) error {
	ca, err := cluster.OpenCA(filepath.Join(w.dir, "store-ca"))
	if err != nil {
		return err
	}
	at := w.machines["objects"]
	w.store, err = objectstore.OpenOn(at.Start, w.path("objects"), net.JoinHostPort(at.Address, "9000"), ca, at.Address)
	return err
}

// startServers starts the metadata and both servers.
func (w *world) startServers(ctx context.Context) (err error) {
	o := w.server("server1")
	o.MetadataOn = w.place("meta")
	if w.first, err = stack.Start(ctx, o); err != nil {
		return err
	}
	w.second, err = w.first.Beside(ctx, "second", w.server("server2"))
	return err
}

func (w *world) server(name plan.Part) stack.Options {
	return stack.Options{
		Dir: w.path(name), Binary: w.programs.Pgherd, On: w.place(name), Archive: true, LeaseHold: leaseHold,
		TemplateDir: clustertest.TemplateDir(),
		AgentFlags:  w.store.Flags(string(name)), BlobDir: w.store.Blobs(string(name)), InvitationURL: invitationPage,
	}
}

// leaseHold is shorter than an operator has it, so that a round sees leases end; invitationPage is what mails name.
const (
	leaseHold      = 4 * time.Second
	invitationPage = "https://soak.example.com/invitations"
)

// startHosts starts a host of each kind on two machines.
func (w *world) startHosts(ctx context.Context) error {
	for _, name := range []plan.Part{"host1", "host2"} {
		api, err := w.first.StartAPIOn(ctx, w.place(name), "")
		if err != nil {
			return err
		}
		batch, err := w.first.StartBatchOn(ctx, w.place(name), "")
		if err != nil {
			return err
		}
		dashboard, err := w.first.StartDashboardOn(ctx, w.place(name))
		if err != nil {
			return err
		}
		w.apis, w.batches, w.dashboards = append(w.apis, api), append(w.batches, batch), append(w.dashboards, dashboard)
	}
	return nil
}

// knowSecrets remembers the secrets that the installation began with.
func (w *world) knowSecrets(context.Context) error {
	w.secrets.Add(objectstore.SecretKey, "the object store's key")
	for _, s := range []*stack.Stack{w.first, w.second} {
		c, err := setup.ReadCredentials(s.CredentialsFile())
		if err != nil {
			return err
		}
		w.secrets.Add(c.AgentPassword, "the agent's password")
		w.secrets.Add(c.PoolerPassword, "the pooler's password")
		w.secrets.Add(c.PoolerAdminPassword, "the password of the pooler's administrator")
		w.secrets.Add(s.AgentSecret(), "the agent's secret")
		w.secrets.Add(s.Server.Password(), "the password of a server's administrator")
	}
	return nil
}

// supervise has whatever ends be started again, until end.
func (w *world) supervise(context.Context) error {
	for n := range w.apis {
		for kind, h := range map[string]*stack.Host{"api": w.apis[n], "batch": w.batches[n], "dashboard": w.dashboards[n]} {
			w.add(hostService(plan.Part(fmt.Sprint(kind, n+1)), h))
		}
	}
	for n, s := range []*stack.Stack{w.first, w.second} {
		w.add(agentService(plan.Part(fmt.Sprint("agent", n+1)), s))
		w.add(postgresService(plan.Part(fmt.Sprint("postgres", n+1)), s.Server))
		w.add(poolerService(plan.Part(fmt.Sprint("pooler", n+1)), s.Pooler))
	}
	w.add(postgresService("metadata", w.first.Metadata))
	w.add(storeService(w.store))
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	for _, s := range w.services {
		ended := make(chan struct{})
		go func() { defer close(ended); s.supervise(ctx) }()
		w.supervised = append(w.supervised, func() { <-ended })
	}
	return nil
}

func (w *world) add(s *service) { w.services[s.name] = s }

// end ends all processes.
func (w *world) end() (err error) {
	if w.stop != nil {
		w.stop()
		for _, ended := range w.supervised {
			ended()
		}
	}
	for _, s := range []*stack.Stack{w.second, w.first} {
		if s != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	if w.store != nil {
		w.store.Kill()
	}
	if w.issuer != nil {
		w.issuer.Stop()
	}
	if w.receiver != nil {
		err = errors.Join(err, w.receiver.Close())
	}
	return err
}

// Build builds the programs, below a folder: pgherd so that its clock can jump.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Programs{}, err
	}
	overlay, err := machines.Overlay(dir)
	if err != nil {
		return Programs{}, err
	}
	made := Programs{Pgherd: filepath.Join(dir, "pgherd"), Svc: filepath.Join(dir, "svc")}
	for _, args := range [][]string{
		{"build", "-overlay", overlay, "-o", made.Pgherd, "./hosts/pgherd"}, {"build", "-o", made.Svc, "./hosts/svc"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return Programs{}, fmt.Errorf("go %s: %w: %s", args, err, out)
		}
	}
	return made, nil
}
