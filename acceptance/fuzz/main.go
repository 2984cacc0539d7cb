// Command fuzz runs the fuzz targets of the repository, each for a while on one processor, and prints a line for each. An input
// that fails is in the testdata of its package then, as Go keeps it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	lasts := flag.Duration("for", 10*time.Minute, "how long each target runs")
	atATime := flag.Int("at-a-time", 1, "how many run at the same time")
	record := flag.String("record", "", "the file that keeps what a target did last")
	only := flag.String("only", "", "a part of the names of those that run, such as core/upload.Fuzz")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := run(ctx, *lasts, *atATime, *only, *record)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run runs the targets with a name that has only in it, and returns how many have failed.
func run(ctx context.Context, lasts time.Duration, atATime int, only, record string) (failed int, err error) {
	all, err := targets(ctx)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	done := map[string]string{}
	for slots := make(chan struct{}, atATime); len(all) > 0 && ctx.Err() == nil; all = all[1:] {
		t := all[0]
		if !strings.Contains(t.String(), only) {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			out, err := t.try(ctx, lasts)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			did := figures(out)
			if err != nil {
				failed++
				did = "FAILED\n" + out
			} else if did != "" {
				done[t.String()] = did
			}
			fmt.Printf("%-60s %s\n", t, did)
		})
	}
	running.Wait()
	if record == "" || ctx.Err() != nil {
		return failed, ctx.Err()
	}
	return failed, keep(record, lasts, done)
}
