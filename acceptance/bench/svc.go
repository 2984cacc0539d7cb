package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
)

const (
	mostStart    = span(30 * time.Millisecond)
	mostAbove    = 10 * time.Millisecond
	startsPerRun = 10
)

// measureSvc starts the command-line client alone, and to list databases: what that takes beyond the API's own time.
func measureSvc(ctx context.Context, b *bench) ([]row, error) {
	program, err := stack.Build(ctx, "svc")
	if err != nil {
		return nil, err
	}
	built, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	list := func(int) error {
		_, err := b.client.Databases.List().Page(ctx, apiclient.Page{})
		return err
	}
	start, err := inTurn(b.runs*startsPerRun, b.running(ctx, program, "--version"), b.running(ctx, b.tools.PgDump, "--version"))
	if err != nil {
		return nil, err
	}
	call, err := inTurn(b.runs*startsPerRun, b.running(ctx, program, "databases", "list"), way{measured: list})
	if err != nil {
		return nil, err
	}
	var above []time.Duration
	for i := range call.ours {
		above = append(above, call.ours[i]-call.byHand[i])
	}
	return []row{
		below("svc --version, against pg_dump --version", span(median(start.ours)), span(median(start.byHand)), mostStart),
		{
			measure: fmt.Sprintf("  svc databases list, %s above the API's own time", span(median(above))),
			ours:    span(median(call.ours)), baseline: span(median(call.byHand)),
			limit: "≤ +" + span(mostAbove).String(), met: median(above) <= mostAbove,
		},
		told("  the program's size", amount(built.Size()), nil),
	}, nil
}

// running runs a program, which svc is, with the account's key and no configuration.
func (b *bench) running(ctx context.Context, program string, args ...string) way {
	return way{measured: func(int) error {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), "SVC_BASE_URL="+b.api.URL, "SVC_API_KEY="+b.account.Key, "XDG_CONFIG_HOME="+b.path("config"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", program, err, out)
		}
		return nil
	}}
}
