//go:build linux

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/proc"
	"github.com/pgherd/pgherd/acceptance/stack"
)

// watchPause is between two looks at the list of processes.
const watchPause = 200 * time.Millisecond

// watchProcesses looks for secrets in the arguments of all processes, until the context ends. Their environments are read by
// their own users alone.
func (r *run) watchProcesses(ctx context.Context) {
	for ctx.Err() == nil {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, line := range lines {
			text, err := os.ReadFile(line)
			if err != nil {
				continue // it has ended
			}
			for _, secret := range r.secrets.In(text) {
				r.broke("secrets in the list of processes", "%s in %s", secret, bytes.ReplaceAll(text, []byte{0}, []byte(" ")))
			}
		}
		wait(ctx, watchPause)
	}
}

// secretsAreNowhere: no password, key or token that was made or told is in a log, in the log of activities, in a dump of the
// metadata, or in an object of the store.
func (r *run) secretsAreNowhere(ctx context.Context) error {
	if r.secrets.Count() == 0 {
		return errors.New("no secret is known to look for")
	}
	dump := exec.CommandContext(ctx, r.first.PgDumpPath(), "--data-only", "--inserts", r.first.MetadataURL())
	text, err := dump.Output()
	var found error
	for _, secret := range r.secrets.In(text) {
		found = errors.Join(found, fmt.Errorf("the metadata, with their log, hold %s", secret))
	}
	for _, dir := range []string{r.path("server1"), r.path("server2")} {
		found = errors.Join(found, r.files(dir, func(name string) bool { return strings.HasSuffix(name, ".log") }))
	}
	return errors.Join(err, found, r.files(r.store.Objects(), func(string) bool { return true }))
}

// files looks for secrets in some files below a folder.
func (r *run) files(dir string, wanted func(name string) bool) (found error) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just been removed
		}
		if err != nil || !e.Type().IsRegular() || !wanted(e.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range r.secrets.In(text) {
			found = errors.Join(found, fmt.Errorf("%s holds %s", path, secret))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return errors.Join(err, found)
}

// footprint is what the service takes while all is quiet: memory, goroutines and descriptors of each process, and what is on the
// servers for a time only.
type footprint map[string]float64

// margin is what a footprint may differ from that after the first round: what is kept of what came since.
var margin = map[string]float64{
	"resident": 128 << 20, "goroutines": 60, "descriptors": 60, "temporary roles": 0, "spooled files": 0,
}

// nothingIsLeft: after each round, the service takes what it took after the first, once the agents have swept.
func (r *run) nothingIsLeft(ctx context.Context, round int) (err error) {
	if round == 0 {
		r.before, err = r.measure(ctx)
		return err
	}
	limit, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return until(limit, func() error { return r.grown(ctx) })
}

// grown says what has grown since the first round.
func (r *run) grown(ctx context.Context) error {
	now, wrong := r.measure(ctx)
	for of, value := range now {
		_, what, _ := strings.Cut(of, ": ")
		if was := r.before[of]; value > was+margin[what] {
			wrong = errors.Join(wrong, fmt.Errorf("%s is %.0f, and was %.0f after the first round", of, value, was))
		}
	}
	return wrong
}

// measure takes the footprint.
func (r *run) measure(ctx context.Context) (footprint, error) {
	taken := footprint{}
	var err error
	for name, s := range r.services {
		one, failed := descriptors(s.current().pid)
		err = errors.Join(err, failed)
		taken[string(name)+": descriptors"] = one
		if strings.HasPrefix(string(name), "postgres") || name == "metadata" || name == "store" {
			continue // their memory is their caches
		}
		one, failed = proc.Resident(s.current().pid)
		err = errors.Join(err, failed)
		taken[string(name)+": resident"] = one
	}
	for n := range r.apis {
		for _, h := range []*stack.Host{r.apis[n], r.batches[n], r.dashboards[n]} {
			text, failed := h.Metrics(ctx)
			err = errors.Join(err, failed)
			taken[h.Name+": goroutines"] = metric(text, "go_goroutines")
		}
	}
	for n, s := range []*stack.Stack{r.first, r.second} {
		found, failed := asks(ctx, s.ServerURL("postgres"), `SELECT count(*)::text FROM pg_roles
			WHERE rolname ~ '^(dump|ext|verify|restore|replaced)_'`)
		err = errors.Join(err, failed)
		if len(found) == 1 {
			taken[fmt.Sprint("server", n+1, ": temporary roles")], _ = strconv.ParseFloat(found[0][0], 64)
		}
		spooled, failed := filepath.Glob(filepath.Join(s.BackupDir(), "spool", "*"))
		err = errors.Join(err, failed)
		taken[fmt.Sprint("server", n+1, ": spooled files")] = float64(len(spooled))
	}
	return taken, err
}

// metric is a value of those that a process shows.
func metric(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			number, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return number
		}
	}
	return 0
}

// descriptors is how many a process has open.
func descriptors(pid int) (float64, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return float64(len(open)), err
}
