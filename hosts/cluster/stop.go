package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// StopMode says how a cluster ends.
type StopMode string

// The stop modes, in PostgreSQL's own terms.
const (
	Fast      StopMode = "fast"      // ends sessions, then shuts down cleanly
	Immediate StopMode = "immediate" // ends at once; the next start recovers
)

const fastSignal = syscall.SIGINT

// stopSignals are what the postmaster takes for each mode.
var stopSignals = map[StopMode]syscall.Signal{Fast: fastSignal, Immediate: syscall.SIGQUIT}

// Stop stops the cluster; one that does not run is no error. When it takes longer than StopLimit or the context, the cluster is
// killed, and the error says so.
func (p *Postgres) Stop(ctx context.Context, mode StopMode) error {
	ask, known := stopSignals[mode]
	if !known {
		return fmt.Errorf("unknown stop mode %q", mode)
	}
	limit, cancel := context.WithTimeout(ctx, StopLimit)
	defer cancel()
	return errors.Join(p.process.stop(limit, ask), p.closeLog())
}

// Restart stops the cluster and starts it again on the same port.
func (p *Postgres) Restart(ctx context.Context, mode StopMode) error {
	if err := p.Stop(ctx, mode); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Kill ends the postmaster and all its sessions with SIGKILL, as a power failure would, and returns when they are gone.
func (p *Postgres) Kill() error { return errors.Join(p.process.kill(), p.closeLog()) }

// Freeze halts the postmaster and all its sessions with SIGSTOP: connections hang, none is refused. Thaw lets them go on.
func (p *Postgres) Freeze() error { return p.process.signalAll(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Postgres) Thaw() error { return p.process.signalAll(syscall.SIGCONT) }
