// Package pgbackrest keeps the archive by the program pgBackRest. The program runs as the agent's user, or as one that the agent
// names: PostgreSQL's own user sees neither the store's keys nor the passphrase. It reads the data directory, for which it needs
// the rights of its group.
package pgbackrest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/blob/s3"
)

// Settings say where things are.
type Settings struct {
	// Program is the path of pgbackrest. It must be absolute: the program runs itself by it.
	Program string
	// Dir is a folder for the files that pgbackrest needs; it is made.
	Dir string
	// As is whom the program runs as, for an agent that is root; nil: the agent's user.
	As *syscall.Credential
	// Repository is the folder of the archive, or what its objects' keys begin with where S3 is not nil.
	Repository string
	S3         *s3.Config
	// Lost says that the archive is that of a server that is gone, which is only read.
	Lost bool
	// Passphrase encrypts everything in the archive.
	Passphrase string
	// Days is how long everything is kept that a moment needs.
	Days int
	// Log hears what is no error; nil where no database is restored by itself.
	Log *zap.Logger
	// Postgres is the server.
	Postgres Postgres
}

// Postgres is the server that is archived.
type Postgres struct {
	DataDir  string
	Host     string // or the folder of its socket
	Port     int
	User     string
	Password string
	Database string // to connect to
}

// stanza is the name of the one server in an archive.
const stanza = "main"

// Engine implements archive.Engine.
type Engine struct {
	s Settings

	mu      sync.Mutex
	follows time.Time // when the newest of the files was changed that the configuration follows
}

// New writes the files of the program.
func New(s Settings) (*Engine, error) {
	e := &Engine{s: s}
	for _, dir := range []string{s.Dir, e.path("lock"), e.path("spool"), e.path("log")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := e.give(dir); err != nil {
			return nil, err
		}
	}
	if s.S3 == nil && !s.Lost {
		if err := os.MkdirAll(s.Repository, 0o700); err != nil {
			return nil, err
		}
		if err := e.give(s.Repository); err != nil {
			return nil, err
		}
	}
	pass := strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(s.Postgres.Password)
	if err := e.write("pgpass", "*:*:*:*:"+pass+"\n"); err != nil {
		return nil, err
	}
	return e, e.configure()
}

func (e *Engine) path(name string) string { return filepath.Join(e.s.Dir, name) }

// give makes a file the program's.
func (e *Engine) give(path string) error {
	if e.s.As == nil {
		return nil
	}
	return os.Chown(path, int(e.s.As.Uid), int(e.s.As.Gid))
}

func (e *Engine) write(name, text string) error {
	next := e.path(name + ".new")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	if err := e.give(next); err != nil {
		return err
	}
	return os.Rename(next, e.path(name))
}

// Version is what the program says of its version.
func Version(ctx context.Context, program string) (string, error) {
	cmd := exec.CommandContext(ctx, program, "version")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	text, err := cmd.Output()
	return strings.TrimSpace(string(text)), err
}

// Prepare implements archive.Engine.
func (e *Engine) Prepare(ctx context.Context) error {
	_, err := e.run(ctx, "stanza-create")
	return err
}

// Push implements archive.Engine.
func (e *Engine) Push(ctx context.Context, file string) error {
	_, err := e.run(ctx, "archive-push", file)
	return err
}

// Copy implements archive.Engine.
func (e *Engine) Copy(ctx context.Context, full bool) error {
	kind := "incr"
	if full {
		kind = "full"
	}
	_, err := e.run(ctx, "backup", "--type="+kind, "--no-expire-auto")
	return err
}

// Expire implements archive.Engine.
func (e *Engine) Expire(ctx context.Context) error {
	_, err := e.run(ctx, "expire")
	return err
}

type infoStanza struct {
	Repositories []struct {
		Status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
	} `json:"repo"`
	Backup []struct {
		Label string `json:"label"`
		Type  string `json:"type"`
		Error *bool  `json:"error"`
		Time  struct {
			Start int64 `json:"start"`
			Stop  int64 `json:"stop"`
		} `json:"timestamp"`
		Archive struct {
			Start string `json:"start"`
			Stop  string `json:"stop"`
		} `json:"archive"`
		Info struct {
			Size int64 `json:"size"`
		} `json:"info"`
		Databases []struct {
			Name string `json:"name"`
			OID  uint32 `json:"oid"`
		} `json:"database-ref"`
	} `json:"backup"`
}

func (e *Engine) info(ctx context.Context, args ...string) (s infoStanza, err error) {
	text, err := e.run(ctx, "info", append(args, "--output=json")...)
	if err != nil {
		return s, err
	}
	return readInfo(text)
}

func readInfo(text []byte) (s infoStanza, err error) {
	var list []infoStanza
	if err := json.Unmarshal(text, &list); err != nil {
		return s, fmt.Errorf("pgbackrest info: %w", err)
	}
	if len(list) == 0 {
		return s, nil
	}
	for _, r := range list[0].Repositories {
		if r.Status.Code == infoOther { // the program has succeeded all the same
			return s, newFailure("info", statusRepository, r.Status.Message)
		}
	}
	return list[0], nil
}

// Backups implements archive.Engine.
func (e *Engine) Backups(ctx context.Context) ([]archive.Backup, error) {
	s, err := e.info(ctx)
	if err != nil {
		return nil, err
	}
	return s.backups()
}

// backups are the copies that are whole. One that an operator has made while the server was down names no segments: what lies
// beside it is not known.
func (s infoStanza) backups() (list []archive.Backup, err error) {
	for _, b := range s.Backup {
		if b.Error != nil && *b.Error {
			continue
		}
		first, ok := archive.ParseSegment(b.Archive.Start)
		last, alsoOK := archive.ParseSegment(b.Archive.Stop)
		if !ok || !alsoOK {
			return nil, fmt.Errorf("pgbackrest info: the copy %q does not name its first and last segment", b.Label)
		}
		list = append(list, archive.Backup{
			Label: b.Label, Full: b.Type == "full", Started: time.Unix(b.Time.Start, 0).UTC(),
			Stopped: time.Unix(b.Time.Stop+1, 0).UTC(), // the program's seconds are whole
			First:   first, Last: last, Size: b.Info.Size,
		})
	}
	return list, nil
}

// Database implements archive.Engine.
func (e *Engine) Database(ctx context.Context, backup, name string) (uint32, error) {
	s, err := e.info(ctx, "--set="+backup)
	if err != nil {
		return 0, err
	}
	for _, b := range s.Backup {
		for _, d := range b.Databases {
			if d.Name == name {
				return d.OID, nil
			}
		}
	}
	return 0, fmt.Errorf("the copy %s has no database %s", backup, name)
}

// Segments implements archive.Engine.
func (e *Engine) Segments(ctx context.Context) ([]archive.Stored, error) {
	files, err := e.list(ctx, "--recurse", "--filter=/[0-9A-F]{24}-[0-9a-f]{40}[.]zst$", "archive/"+stanza)
	if err != nil {
		return nil, err
	}
	return segmentsIn(files), nil
}

// segmentsIn are the segments among files, in their order.
func segmentsIn(files map[string]listed) (list []archive.Stored) {
	for name, file := range files {
		segment, whole, _ := strings.Cut(path.Base(name), "-")
		if s, ok := archive.ParseSegment(segment); ok && whole != "" && file.Type == "file" {
			list = append(list, archive.Stored{Segment: s, Ended: time.Unix(file.Time, 0).UTC()})
		}
	}
	slices.SortFunc(list, func(a, b archive.Stored) int { return cmp.Compare(a.Segment, b.Segment) })
	return slices.CompactFunc(list, func(a, b archive.Stored) bool { return a.Segment == b.Segment })
}

// Restore implements archive.Engine. The program refuses databases that the copy does not have. Which it has is not asked before:
// the list of them was made before the copy, and lacks those that were created meanwhile. Where the manifest of the copy cannot
// be pruned, the program makes a file for each that is left out, which takes longer.
func (e *Engine) Restore(ctx context.Context, r archive.Restore) (err error) {
	own := r.Dir + ".restore" // the lock of this very restore, and its view of the repository
	if err := errors.Join(os.RemoveAll(own), os.Mkdir(own, 0o700), e.give(own)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	args := []string{
		"--set=" + r.Backup, "--pg1-path=" + r.Dir, "--lock-path=" + own, "--spool-path=" + own, "--type=none", "--archive-mode=off",
		"--tablespace-map-all=" + r.Dir + ".tablespaces",
	}
	var holes []hole
	v, err := e.viewFor(ctx, r, own)
	switch {
	case err != nil && (ctx.Err() != nil || e.IsAway(err)):
		return err
	case err != nil:
		e.s.Log.Warn("a copy of the server is fetched with empty files of other databases, which takes longer", zap.Error(err))
	default:
		defer v.close()
		args, holes = append(args, v.args...), v.holes
	}
	databases := slices.Clone(r.Databases)
	for {
		err := e.runUnsynced(ctx, "restore", append(slices.Clone(args), included(databases)...)...)
		left := without(databases, err)
		switch {
		case len(left) < len(databases):
			databases = left
		case err != nil:
			return err
		default:
			return e.makeHoles(r.Dir, holes)
		}
	}
}

func included(databases []uint32) (args []string) {
	for _, oid := range databases {
		args = append(args, "--db-include="+strconv.FormatUint(uint64(oid), 10))
	}
	return args
}

// missingPattern is how the program names a database that a copy does not have.
var missingPattern = regexp.MustCompile(`database to include '([0-9]+)' does not exist`)

// without is what is left of databases without the one that an error says is missing.
func without(databases []uint32, err error) []uint32 {
	f := (*failure)(nil)
	if !errors.As(err, &f) || f.status != statusNoDatabase {
		return databases
	}
	named := missingPattern.FindStringSubmatch(f.says)
	return slices.DeleteFunc(slices.Clone(databases), func(oid uint32) bool {
		return named != nil && strconv.FormatUint(uint64(oid), 10) == named[1]
	})
}

// RestoreCommand implements archive.Engine.
func (e *Engine) RestoreCommand(dir string) string {
	words := append([]string{e.s.Program}, e.args("archive-get", "--pg1-path="+dir, "--log-level-stderr=off")...)
	for i, w := range words {
		words[i] = "'" + strings.NewReplacer("'", `'\''`, "%", "%%").Replace(w) + "'"
	}
	return strings.Join(words, " ") + ` %f "%p"`
}

// Get implements archive.Engine.
func (e *Engine) Get(ctx context.Context, dir, name, path string) (found bool, err error) {
	err = e.runUnsynced(ctx, "archive-get", "--pg1-path="+dir, name, path)
	if f := (*failure)(nil); errors.As(err, &f) && f.status == statusMissing {
		return false, nil
	}
	return err == nil, err
}

// GetAhead implements archive.Engine by what the program starts for itself where archive-get is to be asynchronous: one that
// fetches a list of segments, several at a time, into its spool.
func (e *Engine) GetAhead(ctx context.Context, dir, folder string, list []archive.Segment) error {
	for _, own := range []string{"archive", stanza, "in"} {
		folder = filepath.Join(folder, own)
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := e.give(folder); err != nil {
			return err
		}
	}
	spool := filepath.Join(folder, "..", "..", "..")
	args := []string{"--pg1-path=" + dir, "--archive-async", "--spool-path=" + spool, "--lock-path=" + spool}
	for _, s := range list {
		args = append(args, string(s))
	}
	return e.runUnsynced(ctx, "archive-get:async", args...)
}

// Ahead implements archive.Engine.
func (e *Engine) Ahead(folder string, s archive.Segment) string {
	return filepath.Join(folder, "archive", stanza, "in", string(s))
}
