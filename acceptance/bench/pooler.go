package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	manyDatabases   = 5000
	loginsOfEach    = 6
	changesPerRun   = 5
	mostForAChange  = time.Second
	mostForARestart = 5 * time.Second // with PgBouncer 1.26, which needs 3 GB for that many limits
	poolerLocalhost = "127.0.0.1"
)

// measurePooler is about a PgBouncer of its own: how long a change takes, and what it needs.
func measurePooler(ctx context.Context, b *bench) ([]row, error) {
	settings, owner, err := b.poolerSettings()
	if err != nil {
		return nil, err
	}
	p := pooler.New(settings, owner)
	defer p.Close()
	changes, err := b.poolerChanges(ctx, p, manyEntries(settings))
	if err != nil {
		return nil, err
	}
	restarts, err := b.poolerRestarts(ctx, p, manyEntries(settings))
	if err != nil {
		return nil, err
	}
	memory, err := b.poolerMemory(ctx, p, settings)
	return slices.Concat(changes, restarts, memory), err
}

// poolerChanges changes one of 5,000 databases with 30,000 logins, over and over: each change renders every file, writes it,
// reloads, and reads back that PgBouncer goes by it.
func (b *bench) poolerChanges(ctx context.Context, p *pooler.Pooler, state pooler.State) ([]row, error) {
	return b.timePooler(ctx, p, state, "render, write, reload and read back", mostForAChange, func(_ *cluster.Pooler, n int) error {
		state.Entries[n].Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		return p.Apply(ctx, state)
	})
}

// poolerRestarts ends PgBouncer at once, and starts it again: for that long nobody can log in.
func (b *bench) poolerRestarts(ctx context.Context, p *pooler.Pooler, state pooler.State) ([]row, error) {
	return b.timePooler(ctx, p, state, "restart of PgBouncer with", mostForARestart, func(running *cluster.Pooler, _ int) error {
		began := time.Now()
		if err := running.Restart(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		for p.Ping(ctx) != nil && time.Since(began) < mostForARestart {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
}

// timePooler does something with a PgBouncer that has started with a state, over and over. The first time does not count.
func (b *bench) timePooler(
	ctx context.Context, p *pooler.Pooler, state pooler.State, what string, most time.Duration, do func(*cluster.Pooler, int) error,
) ([]row, error) {
	var took []time.Duration
	err := b.withPooler(ctx, p, state, func(running *cluster.Pooler) error {
		for n := range b.runs*changesPerRun + 1 {
			began := time.Now()
			if err := do(running, n); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ours := median(took[1:])
	return []row{{
		measure: fmt.Sprintf("%s %d databases, %d logins (median of %d)", what, manyDatabases, manyDatabases*loginsOfEach, len(took)-1),
		ours:    span(ours).String(), limit: "< " + span(most).String(), met: ours < most,
	}}, nil
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
