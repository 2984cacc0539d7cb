package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// bench is a running pgherd with one account.
type bench struct {
	dir     string
	runs    int
	scale   float64 // of the sizes of databases
	tools   toolchain.Tools
	stack   *stack.Stack
	api     *stack.Host
	agent   *stack.Process
	account stack.Account
	client  client
	text    *textDatabase // made by the first part that needs it
	table   table
	batch   bool // it has been started
}

// start builds the program from the tree and brings everything up with fsync on, in a folder below the repository: the system's
// folder for temporary files may be in memory, where an fsync costs nothing.
func start(ctx context.Context, runs int, scale float64) (b *bench, err error) {
	root, err := toolchain.Root()
	if err != nil {
		return nil, err
	}
	state := filepath.Join(root, ".pgherd")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	b = &bench{runs: runs, scale: scale}
	if b.dir, err = os.MkdirTemp(state, "bench-"); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{b.prepare, b.raise, b.enter} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, b.stop())
		}
	}
	return b, nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) prepare(context.Context) (err error) {
	if b.tools, err = toolchain.Find(); err != nil {
		return err
	}
	// PostgreSQL's system user passes through the folder.
	return errors.Join(os.Chmod(b.dir, 0o755), os.Mkdir(b.path("stack"), 0o755))
}

func (b *bench) raise(ctx context.Context) error {
	binary, err := stack.Build(ctx, "pgherd")
	if err != nil {
		return err
	}
	if b.stack, err = stack.Start(ctx, stack.Options{Dir: b.path("stack"), Binary: binary, Durable: true}); err != nil {
		return err
	}
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

func (b *bench) stop() error {
	var err error
	if b.stack != nil {
		err = b.stack.Stop()
	}
	if err != nil {
		return fmt.Errorf("stopping; the logs are in %s: %w", b.dir, err)
	}
	return os.RemoveAll(b.dir)
}
