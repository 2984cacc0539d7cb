// Command scale shows how what pgherd costs grows with what it has: it fills a metadata database with databases, accounts,
// servers and a history of operations, puts agents beside it that speak the agents' protocol and keep everything in memory, and
// measures real hosts over that. The same is done for several sizes. It prints a page, and exits with status 1 where a figure
// grows faster than it may.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// size is what a metadata database is filled with.
type size struct {
	databases, accounts, servers int
	history                      int // operations, and as many entries of the log
}

func main() {
	databases := flag.String("databases", "1000,10000,100000", "how many databases there are, each measured by itself")
	accounts := flag.Int("accounts", 1000, "how many accounts there are, whatever the databases")
	servers := flag.Int("servers", 100, "how many servers there are, likewise")
	history := flag.Int("history", 100, "how many operations, and entries of the log, there are for each database")
	idle := flag.Duration("idle", 10*time.Minute, "for how long hosts are looked at that have nothing to do")
	only := flag.String("only", "", "parts to measure, such as idle,reads; all of them where empty")
	page := flag.String("page", "", "the Markdown file to write; standard output where empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var sizes []size
	for text := range strings.SplitSeq(*databases, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			exit(fmt.Errorf("-databases: %q is no number", text))
		}
		sizes = append(sizes, size{databases: n, accounts: *accounts, servers: *servers, history: n * *history})
	}
	exit(measure(ctx, sizes, settings{idle: *idle, only: *only, page: *page}))
}

type settings struct {
	idle time.Duration
	only string
	page string
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// part measures some figures of a world.
type part struct {
	name string
	run  func(*world, context.Context) ([]figure, error)
}

// The parts come in the order in which they change least of what the others look at.
var parts = []part{
	{"start", (*world).starts}, {"idle", (*world).idles}, {"reads", (*world).reads}, {"claims", (*world).claims},
	{"day", (*world).day}, {"leases", (*world).leases}, {"retention", (*world).retention}, {"migration", (*world).migration},
}

var errGrows = errors.New("a figure grows faster than it may")

func measure(ctx context.Context, sizes []size, s settings) error {
	var all report
	for _, n := range sizes {
		figures, err := measureOne(ctx, n, s)
		all = append(all, column{n, figures})
		if err != nil {
			fmt.Println(all.markdown())
			return err
		}
	}
	text := all.markdown()
	if s.page == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(s.page, []byte(text), 0o644); err != nil {
		return err
	}
	if all.broken() {
		return errGrows
	}
	return nil
}

func measureOne(ctx context.Context, n size, s settings) (all []figure, err error) {
	fmt.Fprintf(os.Stderr, "%d databases: filling ...\n", n.databases)
	w, err := newWorld(ctx, n, s)
	defer func() { err = errors.Join(err, w.stop()) }()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if s.only != "" && !strings.Contains(","+s.only+",", ","+p.name+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "%d databases: %s ...\n", n.databases, p.name)
		figures, err := p.run(w, ctx)
		if all = append(all, figures...); err != nil {
			return all, fmt.Errorf("%s: %w", p.name, err)
		}
		for _, f := range figures {
			fmt.Fprintf(os.Stderr, "  %s: %s\n", f.what, f)
		}
	}
	return all, w.fleet.unknown()
}
