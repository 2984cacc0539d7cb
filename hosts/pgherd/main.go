// Command pgherd is a self-hosted managed PostgreSQL service: its API, its batch host, its agent on the database server, and
// its operator's tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

func main() {
	child.BecomeUnsynced()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.Root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgherd:", err)
		os.Exit(status(err))
	}
}

// status is the exit status of a command that has failed: 2 where it has done nothing because nobody has confirmed it, and one
// of its own for an archive_command without an agent.
func status(err error) int {
	switch {
	case errors.Is(err, admin.ErrNotConfirmed):
		return 2
	case errors.Is(err, archive.ErrNoAgent):
		return archive.ExitNoAgent
	}
	return 1
}
