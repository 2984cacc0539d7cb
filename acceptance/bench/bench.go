package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// bench is a running pgherd with one account.
type bench struct {
	runs     int
	scale    float64 // of the sizes of databases
	tools    toolchain.Tools
	measured *stack.Measured
	stack    *stack.Stack // the one that is measured
	api      *stack.Host
	agent    *stack.Process
	account  stack.Account
	client   client
	text     *textDatabase // made by the first part that needs it
	table    table
	batch    bool // it has been started
}

// start builds the program from the tree and brings everything up with fsync on.
func start(ctx context.Context, runs int, scale float64) (b *bench, err error) {
	b = &bench{runs: runs, scale: scale}
	if b.tools, err = toolchain.Find(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{b.raise, b.enter} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, b.stop())
		}
	}
	return b, nil
}

func (b *bench) path(name string) string { return filepath.Join(b.measured.Dir, name) }

func (b *bench) raise(ctx context.Context) (err error) {
	if b.measured, err = stack.StartMeasured(ctx, "bench"); err != nil {
		return err
	}
	b.stack = b.measured.Stack
	b.agent = b.stack.FirstAgent()
	b.api, err = b.stack.StartAPI(ctx, "", "--downloads-per-account", strconv.Itoa(fastDownloads+1))
	return err
}

// plentiful is more databases than any part makes.
const plentiful = 1000

func (b *bench) enter(ctx context.Context) (err error) {
	if b.account, err = b.stack.NewAccount(ctx, "bench", "business", plentiful); err == nil {
		b.client, err = newClient(b.api.URL, b.account.Key)
	}
	return err
}

// withBatch starts the batch host for the first part that needs it.
func (b *bench) withBatch(ctx context.Context) error {
	if b.batch {
		return nil
	}
	_, err := b.stack.StartBatch(ctx, "")
	b.batch = err == nil
	return err
}

// healthy asks the doctor, who finds nothing. What parts have dropped by hand goes out of PgBouncer's files with the next change
// that the agent makes there.
func (b *bench) healthy(ctx context.Context) error {
	_, err := b.client.Databases.Create(ctx, wire.CreateDatabase{Name: "the-last-one", DisplayName: "The last one"})
	return errors.Join(err, stack.Healthy(ctx, b.stack))
}

func (b *bench) stop() error { return b.measured.End() }
