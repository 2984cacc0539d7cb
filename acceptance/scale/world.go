package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// world is an installation with metadata of one size. Its hosts run only while a part has them.
type world struct {
	size
	settings
	stack *stack.Measured
	fleet *fleet
	meta  *sql.DB
	// owner is an account with a tenth of all databases.
	owner stack.Account
	rows  rows
}

func newWorld(ctx context.Context, n size, s settings) (*world, error) {
	w := &world{size: n, settings: s}
	for _, step := range []func(context.Context) error{w.raise, w.listen, w.fill} {
		if err := step(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) raise(ctx context.Context) (err error) {
	if w.stack, err = stack.StartMeasured(ctx, "scale"); err != nil {
		return err
	}
	if w.owner, err = w.stack.NewAccount(ctx, "owner", "business", 10*w.databases); err != nil {
		return err
	}
	w.meta, err = sql.Open("postgres", w.stack.MetadataURL())
	return err
}

// listen makes the certificate that all agents of the fleet have.
func (w *world) listen(context.Context) error {
	dir := filepath.Join(w.stack.Dir, "fleet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ca, err := cluster.OpenCA(dir)
	if err != nil {
		return err
	}
	certificate, err := ca.IssueOwn("agents", "127.0.0.1")
	if err == nil {
		w.fleet = newFleet(certificate)
	}
	return err
}

func (w *world) stop() error {
	var failed error
	if w.fleet != nil {
		failed = w.fleet.stop()
	}
	if w.meta != nil {
		failed = errors.Join(failed, w.meta.Close())
	}
	return errors.Join(failed, w.stack.End())
}

// withHosts does something while an API host, a dashboard and two batch hosts run, once they have settled.
func (w *world) withHosts(ctx context.Context, do func(h hosts) error) (err error) {
	var h hosts
	defer func() { err = errors.Join(err, h.stop()) }()
	if h.api, err = w.stack.StartAPI(ctx, ""); err != nil {
		return err
	}
	if h.dashboard, err = w.stack.StartDashboard(ctx); err != nil {
		return err
	}
	for range 2 {
		batch, err := w.stack.StartBatch(ctx, "", "--workers", "32")
		if err != nil {
			return err
		}
		h.batches = append(h.batches, batch)
	}
	if h.client, err = stack.Client(h.api.URL, w.owner.Key, nil); err != nil {
		return err
	}
	if err := sleep(ctx, settling); err != nil {
		return err
	}
	return do(h)
}

// settling is what hosts have to do once when they start.
const settling = 30 * time.Second

// hosts are the processes of the control plane.
type hosts struct {
	api, dashboard *stack.Host
	batches        []*stack.Host
	client         *apiclient.Client
}

func (h hosts) all() (list []*stack.Host) {
	for _, one := range append([]*stack.Host{h.api, h.dashboard}, h.batches...) {
		if one != nil {
			list = append(list, one)
		}
	}
	return list
}

func (h hosts) stop() error {
	var failed error
	for _, one := range h.all() {
		failed = errors.Join(failed, one.Kill())
	}
	return failed
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
