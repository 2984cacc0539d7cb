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
	ofOne := flag.String("of-one-server", "500,5000", "how many databases one real server has, likewise")
	accounts := flag.Int("accounts", 1000, "how many accounts there are, whatever the databases")
	servers := flag.Int("servers", 100, "how many servers there are, likewise")
	history := flag.Int("history", 100, "how many operations, and entries of the log, there are for each database")
	idle := flag.Duration("idle", 10*time.Minute, "for how long hosts are looked at that have nothing to do")
	only := flag.String("only", "", "parts of an installation to measure, such as idle,reads; all where empty")
	page := flag.String("page", "", "the Markdown file to write; standard output where empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := sizes(*databases)
	if err != nil {
		exit(fmt.Errorf("-databases: %w", err))
	}
	for i := range all {
		all[i].accounts, all[i].servers, all[i].history = *accounts, *servers, all[i].databases**history
	}
	server, err := sizes(*ofOne)
	if err != nil {
		exit(fmt.Errorf("-of-one-server: %w", err))
	}
	exit(measure(ctx, all, server, settings{idle: *idle, only: *only, page: *page}))
}

// sizes are those of a list of numbers of databases.
func sizes(list string) (all []size, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number", text)
		}
		all = append(all, size{databases: n})
	}
	return all, nil
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

// measure prints what it has where it cannot go on.
func measure(ctx context.Context, all, ofOne []size, s settings) error {
	var fleet, one report
	for _, n := range all {
		figures, err := measureOne(ctx, n, s)
		if fleet = append(fleet, column{n, figures}); err != nil {
			fmt.Print(anInstallation(fleet))
			return err
		}
	}
	if len(ofOne) > 0 {
		var err error
		if one, err = measureServer(ctx, ofOne, s); err != nil {
			fmt.Print(anInstallation(fleet) + oneServer(one))
			return err
		}
	}
	text := fmt.Sprintf(head, machine(), commit()) + anInstallation(fleet) + oneServer(one)
	if s.page == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(s.page, []byte(text), 0o644); err != nil {
		return err
	}
	if fleet.broken() || one.broken() {
		return errGrows
	}
	return nil
}

// note tells whoever waits how far it is.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func measureOne(ctx context.Context, n size, s settings) (all []figure, err error) {
	note("%d databases: filling ...", n.databases)
	w, err := newWorld(ctx, n, s)
	defer func() { err = errors.Join(err, w.stop()) }()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if s.only != "" && !strings.Contains(","+s.only+",", ","+p.name+",") {
			continue
		}
		note("%d databases: %s ...", n.databases, p.name)
		figures, err := p.run(w, ctx)
		if all = append(all, figures...); err != nil {
			return all, fmt.Errorf("%s: %w", p.name, err)
		}
		for _, f := range figures {
			note("  %s: %s", f.what, f)
		}
	}
	return all, w.fleet.unknown()
}
