package wiring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// Ring keeps a host on the installation's ring of keys.
type Ring struct {
	box  *secretbox.Box
	file string
	name string // that others call the host
	use  *keyrings.Keyring

	mu        sync.Mutex
	metadata  string // where they are
	complaint string // the last trouble that was logged
}

// openRing loads the ring of a host. One that is missing is to be made only where there never was one.
func openRing(s Settings, store *postgres.Store) (*secretbox.Box, error) {
	box, err := secretbox.Load(s.KeyringFile)
	if errors.Is(err, fs.ErrNotExist) {
		ctx, cancel := context.WithTimeout(context.Background(), ringLookLimit)
		defer cancel()
		remedy := "restore the ring from its backup, or copy it from another host"
		if empty, looked := keyrings.Empty(ctx, store); looked == nil && empty {
			remedy = "pgherd admin secrets init makes it"
		}
		err = fmt.Errorf("%w: %s", err, remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("--keyring-file: %w", err)
	}
	return box, nil
}

func newRing(s Settings, box *secretbox.Box, cp *controlplane.ControlPlane) (*Ring, error) {
	machine, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &Ring{
		box: box, file: s.KeyringFile, name: fmt.Sprintf("%s %s %s", s.Kind, machine, s.OpsListen), use: cp.Keyring,
		metadata: postgres.Config{URL: s.MetadataURL}.Place(),
	}, nil
}

// join refuses the start of a host whose ring is not the installation's.
func (r *Ring) join(ctx context.Context) error {
	if err := r.use.JoinFrom(ctx, thisBoot(), r.name); err != nil {
		return fmt.Errorf("--keyring-file %s: %w", r.file, err)
	}
	return nil
}

func ringCheck(r *Ring) Check {
	return Check{Name: "keyring", Run: func(context.Context) error { return r.use.Ready() }}
}

const (
	ringLookLimit = 5 * time.Second
	ringFileEvery = time.Second // how often the file is looked at
)

// Reread implements Followed.
func (r *Ring) Reread(log *zap.Logger) { r.refresh(log) }

// refresh tells the metadata what the ring has, and hears which key encrypts. It logs trouble when it begins, and its end.
func (r *Ring) refresh(log *zap.Logger) (ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), ringLookLimit)
	defer cancel()
	err := r.use.Refresh(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.complaint != "":
		log.Info("the key ring is confirmed again", zap.String("file", r.file))
		r.complaint = ""
	case err == nil:
	case errors.Is(err, ports.ErrUnavailable):
		if r.complaint != ports.ErrUnavailable.Error() { // what else is said of that differs
			log.Warn("the key ring cannot be confirmed while the metadata database does not answer",
				zap.String("file", r.file), zap.String("metadata", r.metadata), zap.Error(err))
		}
		r.complaint = ports.ErrUnavailable.Error()
	case err.Error() != r.complaint:
		log.Warn("the key ring cannot be confirmed", zap.String("file", r.file), zap.Error(err))
		r.complaint = err.Error()
	}
	return err == nil
}

// follow looks at the ring when its file has changed, every so often, and soon again after trouble.
func (r *Ring) follow(ctx context.Context, log *zap.Logger) {
	tick := time.NewTicker(ringFileEvery)
	defer tick.Stop()
	ok, version := true, r.box.Version()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := r.box.Version(); now != version || !ok || time.Since(last) >= keyring.ReportEvery {
			version, ok, last = now, r.refresh(log), time.Now()
		}
	}
}

// keepRing has a host count and follow its ring from its start to its end. The metrics say whether it can be used.
func keepRing(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, m metrics.Registry, r *Ring) error {
	lc.Append(fx.StartStopHook(r.join, func(ctx context.Context) {
		if err := r.use.Leave(ctx); err != nil {
			log.Warn("it could not be stored that this host has stopped: changes of the key ring wait for it", zap.Error(err))
		}
	}))
	Attach(lc, stop, log, Part{Name: "key ring", Run: func(ctx context.Context) error {
		r.follow(ctx, log)
		return nil
	}})
	return m.YesOrNo("pgherd_keyring_confirmed",
		"1 if the key ring of this host was the installation's when that was last looked at, 30 s ago at most.",
		func() bool { return r.use.Ready() == nil })
}
