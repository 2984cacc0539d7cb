// Command upgrade tries an upgrade from an earlier version, a tag or commit of this repository, to this one: it installs the
// earlier one, kills it during a backup, and goes on with this one, which has to finish the backup.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// patience bounds a build and each of the steps together.
const patience = 20 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "upgrade: name the tag or commit to upgrade from")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithTimeout(ctx, patience)
	err := try(ctx, os.Args[1])
	end()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// try upgrades, in a folder that is removed afterwards.
func try(ctx context.Context, from string) (err error) {
	dir, err := os.MkdirTemp("", "pgherd-upgrade-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	u := upgrade{from: from}
	say("building %s and this version", from)
	if u.before, err = buildCommit(ctx, dir, from); err != nil {
		return err
	}
	if u.now, err = stack.Build(ctx, "pgherd"); err != nil {
		return err
	}
	state := filepath.Join(dir, "state")
	// PostgreSQL's system user passes through both.
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(state, 0o755)); err != nil {
		return err
	}
	u.Stack, err = stack.Start(ctx, stack.Options{Dir: state, Binary: u.before, LeaseHold: leaseHold})
	defer func() { err = errors.Join(err, u.Stop()) }()
	if err != nil {
		return err
	}
	return u.run(ctx)
}

// leaseHold is short, because the operation is waited for.
const leaseHold = 2 * time.Second

// buildCommit builds the program of a commit in a work tree of its own.
func buildCommit(ctx context.Context, dir, commit string) (binary string, err error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", err
	}
	git := func(ctx context.Context, args ...string) error {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
		return err
	}
	tree, binary := filepath.Join(dir, "tree"), filepath.Join(dir, "before", "pgherd")
	if err := git(ctx, "worktree", "add", "--detach", tree, commit); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)) }()
	return binary, stack.BuildOf(ctx, tree, binary)
}

// upgrade is a stack that begins with one program and goes on with another.
type upgrade struct {
	*stack.Stack
	from        string
	before, now string // the programs

	api, batch *stack.Host
	metadata   *sql.DB
}

func (u *upgrade) run(ctx context.Context) (err error) {
	if u.metadata, err = sql.Open("postgres", u.MetadataURL()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.metadata.Close()) }()
	if u.api, err = u.StartAPI(ctx, ""); err != nil {
		return err
	}
	if u.batch, err = u.StartBatch(ctx, ""); err != nil {
		return err
	}
	begun, err := u.killDuringBackup(ctx)
	if err != nil {
		return err
	}
	if err := u.migrate(ctx); err != nil {
		return err
	}
	say("starting agent and hosts of this version")
	agent, err := u.LaunchAgent("")
	if err != nil {
		return err
	}
	if err := errors.Join(u.AwaitAgent(ctx, agent), u.api.Restart(ctx, ""), u.batch.Restart(ctx, "")); err != nil {
		return err
	}
	if err := begun.check(ctx, u.api); err != nil {
		return err
	}
	say("the backup that %s began was finished, and is what its record says", u.from)
	return stack.Healthy(ctx, u)
}

// migrate upgrades the metadata, and has an API host of the version before start again meanwhile: it has to where the schema says
// that it serves that version, and must not else.
func (u *upgrade) migrate(ctx context.Context) error {
	known, err := u.stored(ctx, "SELECT max(version_id) FROM goose_db_version")
	if err != nil {
		return err
	}
	say("upgrading the metadata")
	u.Use(u.now)
	if err := u.Upgrade(ctx); err != nil {
		return err
	}
	oldest, err := u.stored(ctx, "SELECT schema_version FROM oldest_program")
	if err != nil {
		return err
	}
	u.Use(u.before)
	started := u.api.Restart(ctx, "")
	u.Use(u.now)
	switch serves := oldest <= known; {
	case serves && started != nil:
		return fmt.Errorf("the schema serves %s, but a host of it: %w", u.from, started)
	case !serves && started == nil:
		return fmt.Errorf("the schema does not serve %s, but a host of it has started", u.from)
	case serves:
		say("a host of %s starts with the new schema", u.from)
	default:
		say("a host of %s refuses the new schema", u.from)
	}
	return u.api.Kill()
}

func (u *upgrade) stored(ctx context.Context, query string) (version int64, err error) {
	return version, u.metadata.QueryRowContext(ctx, query).Scan(&version)
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// sum is the SHA-256 of what a reader holds.
func sum(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}
