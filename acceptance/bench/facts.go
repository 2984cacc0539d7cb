package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/proc"
)

// facts describe the machine, so that two tables can be compared.
func (b *bench) facts(ctx context.Context) (string, error) {
	server, err := b.settings(ctx)
	if err != nil {
		return "", err
	}
	bouncer, err := version(ctx, b.tools.PgBouncer)
	if err != nil {
		return "", err
	}
	dump, err := version(ctx, b.tools.PgDump)
	if err != nil {
		return "", err
	}
	zip, err := version(ctx, "gzip")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s, %d cores (%s), load %s, %s\n%s, %s, %s, %s\n", time.Now().UTC().Format(time.RFC3339),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), proc.Processor(), load(), runtime.Version(), server, bouncer, dump, zip), nil
}

func (b *bench) settings(ctx context.Context) (text string, err error) {
	db, err := sql.Open("postgres", b.stack.Server.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer db.Close()
	const query = `SELECT format('PostgreSQL %s (fsync %s, synchronous_commit %s, shared_buffers %s)',
		current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('shared_buffers'))`
	return text, db.QueryRowContext(ctx, query).Scan(&text)
}

// version is the first line of what a program says about itself.
func version(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first, err
}

// load is the machine's load average over one minute: a high one before a part means that others work at the same time.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
