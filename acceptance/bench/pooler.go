package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	manyDatabases   = 5000
	loginsOfEach    = 6
	changesPerRun   = 5
	mostForAChange  = span(time.Second)
	mostForARestart = span(5 * time.Second) // with PgBouncer 1.26, which needs 3 GB for that many limits
	poolerLocalhost = "127.0.0.1"
)

// measurePooler is about a PgBouncer of its own: how long a change takes, and what it needs. By hand it is one with an entry for
// all databases and no limits, whose file is written and reloaded.
func measurePooler(ctx context.Context, b *bench) ([]row, error) {
	settings, owner, err := b.poolerSettings()
	if err != nil {
		return nil, err
	}
	p := pooler.New(settings, owner)
	defer p.Close()
	var took [2]turns
	for i, state := range []pooler.State{manyEntries(settings), {Settings: settings}} {
		if err := b.withPooler(ctx, p, state, func(running *cluster.Pooler) error {
			change := func(n int) error { return rewritten(ctx, p, running, settings) }
			if i == 0 {
				change = func(n int) error {
					state.Entries[n].Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
					return p.Apply(ctx, state)
				}
			}
			restart := func(int) error { return restarted(ctx, p, running) }
			return errors.Join(b.often(change, took[0].of(i)), b.often(restart, took[1].of(i)))
		}); err != nil {
			return nil, err
		}
	}
	many := fmt.Sprintf("%d databases, %d logins", manyDatabases, manyDatabases*loginsOfEach)
	rows := []row{
		below("render, write, reload and read back "+many+", against a file and RELOAD by hand", span(median(took[0].ours)),
			span(median(took[0].byHand)), mostForAChange),
		below("restart of PgBouncer with "+many+", against one that knows none", span(median(took[1].ours)),
			span(median(took[1].byHand)), mostForARestart),
	}
	memory, err := b.poolerMemory(ctx, p, settings)
	return append(rows, memory...), err
}

func (t *turns) of(i int) *[]time.Duration { return []*[]time.Duration{&t.ours, &t.byHand}[i] }

// often does something over and over. The first time does not count.
func (b *bench) often(do func(n int) error, into *[]time.Duration) error {
	for n := range b.runs*changesPerRun + 1 {
		if err := (way{measured: do}).clock(n, into); err != nil {
			return err
		}
	}
	*into = (*into)[1:]
	return nil
}

// rewritten writes PgBouncer's file again as it is, and reloads.
func rewritten(ctx context.Context, p *pooler.Pooler, running *cluster.Pooler, s pooler.Settings) error {
	file := pooler.ConfigFile(s.Dir)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	return errors.Join(err, syscall.Kill(running.Pid(), syscall.SIGHUP), p.Ping(ctx))
}

// restarted ends PgBouncer at once, and starts it again: for that long nobody can log in.
func restarted(ctx context.Context, p *pooler.Pooler, running *cluster.Pooler) error {
	began := time.Now()
	if err := running.Restart(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	for p.Ping(ctx) != nil && time.Since(began) < time.Duration(mostForARestart) {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// withPooler runs a PgBouncer that has started with a state.
func (b *bench) withPooler(ctx context.Context, p *pooler.Pooler, state pooler.State, use func(*cluster.Pooler) error) error {
	if err := p.Write(state); err != nil {
		return err
	}
	running, err := cluster.RunPooler(context.WithoutCancel(ctx), cluster.PoolerOptions{
		Ini: pooler.ConfigFile(state.Settings.Dir), Host: poolerLocalhost, Port: state.Settings.ListenPort, Tools: b.tools,
	})
	if err != nil {
		return err
	}
	return errors.Join(use(running), running.Stop(context.WithoutCancel(ctx)))
}

func (b *bench) poolerSettings() (s pooler.Settings, owner *pooler.Owner, err error) {
	s = pooler.DefaultSettings()
	s.Dir, s.AuthPassword, s.AdminPassword = b.path("pooler"), "nobody asks", "the bench asks"
	s.ServerPort = b.stack.Server.Port()
	ca, err := cluster.OpenCA(b.path("pooler-ca"))
	if err != nil {
		return s, nil, err
	}
	certificate, err := ca.Issue("pooler", "localhost")
	if err != nil {
		return s, nil, err
	}
	s.TLSCertFile, s.TLSKeyFile = certificate.CertFile, certificate.KeyFile
	if s.ListenPort, err = cluster.FreePort(poolerLocalhost); err != nil {
		return s, nil, err
	}
	if s.SocketDir, err = cluster.SocketDir(b.path("pooler-socket")); err != nil {
		return s, nil, err
	}
	uid, gid, switched, err := cluster.ChildUser()
	if switched {
		owner = &pooler.Owner{UID: uid, GID: gid}
	}
	return s, owner, errors.Join(err, os.MkdirAll(s.Dir, 0o700))
}

func manyEntries(s pooler.Settings) pooler.State {
	state := pooler.State{Settings: s}
	for n := range manyDatabases {
		e := pooler.Entry{Database: fmt.Sprintf("database-%05d", n), ConnectionCap: 20}
		e.Logins = append(e.Logins, pooler.Login{Name: e.Database, MaxConnections: 20})
		for role := range loginsOfEach - 1 {
			e.Logins = append(e.Logins, pooler.Login{Name: fmt.Sprintf("pgh_%032d_c%d", n, role), MaxConnections: 5})
		}
		state.Entries = append(state.Entries, e)
	}
	return state
}
