// Command bench measures a whole pgherd on this machine, real PostgreSQL, PgBouncer, agent, API and batch host, and prints each
// figure as a ratio to a plain baseline that was measured in the same run. It exits with status 1 when a limit is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// part is one measurement.
type part struct {
	name string
	what string
	run  func(ctx context.Context, b *bench) ([]row, error)
}

var parts = []part{
	{"a", "create a database", measureCreate},
	{"p", "create a preview", measurePreview},
	{"b", "read a database", measureRead},
	{"b2", "read a database with traces", measureTraced},
	{"c", "back a database up", measureBackup},
	{"c2", "verify a backup", measureVerified},
	{"c3", "restore a backup", measureRestore},
	{"c4", "close a database for a restore", measureSwitch},
	{"c5", "clone a database", measureClone},
	{"c6", "delete a database, and recover it", measureDeletion},
	{"d", "memory during downloads", measureDownload},
	{"e", "5,000 databases in the pooler", measurePooler},
	{"e2", "2,000 logins that were in the pooler", measureGone},
	{"e3", "1,000 databases that go from the pooler", measureEnds},
	{"r1", "create an additional role", measureRoleCreate},
	{"r2", "rotate its password", measureRotate},
	{"r3", "rotate beside the clients of other logins", measureBystanders},
	{"r4", "create and rotate a role with one connection", measureOneConnection},
	{"w", "deliver webhooks", measureWebhooks},
	{"v", "show pages of the dashboard", measurePages},
	{"v2", "memory of pages that stay open", measureStreams},
	{"s", "start svc", measureSvc},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == plainHandler {
		exit(servePlain(os.Stdin, os.Stdout))
	}
	only := flag.String("only", "", "parts to run, such as a,b; all of them where empty")
	runs := flag.Int("runs", 3, "how often each comparison is repeated; medians count")
	scale := flag.Float64("scale", 1, "the share of the rows and tables that databases get; limits count at 1")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(measure(ctx, *only, *runs, *scale))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var errMissed = errors.New("a limit was missed")

func measure(ctx context.Context, only string, runs int, scale float64) (err error) {
	chosen, err := choose(only)
	if err != nil || runs < 1 || scale <= 0 || scale > 1 {
		return errors.Join(err, flagError(runs, scale))
	}
	b, err := start(ctx, runs, scale)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	facts, err := b.facts(ctx)
	if err != nil {
		return err
	}
	fmt.Print(facts)
	defer func() { fmt.Print(b.table) }() // what was measured before an error too
	missed := false
	for _, p := range chosen {
		fmt.Fprintf(os.Stderr, "measuring (%s): %s ...\n", p.name, p.what)
		rows, err := p.run(ctx, b)
		if err != nil {
			return fmt.Errorf("(%s) %s: %w", p.name, p.what, err)
		}
		for _, r := range rows {
			missed = missed || !r.met && scale == 1
		}
		b.table = append(b.table, section{p, rows, load()})
	}
	if err := b.healthy(ctx); err != nil {
		return err
	}
	if missed {
		return errMissed
	}
	return nil
}

func flagError(runs int, scale float64) error {
	switch {
	case runs < 1:
		return errors.New("-runs must be 1 or more")
	case scale <= 0 || scale > 1:
		return errors.New("-scale must be more than 0 and at most 1")
	}
	return nil
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		known := false
		for _, p := range parts {
			if p.name == strings.TrimSpace(name) {
				chosen, known = append(chosen, p), true
			}
		}
		if !known {
			return nil, fmt.Errorf("-only: there is no part %q", name)
		}
	}
	return chosen, nil
}
