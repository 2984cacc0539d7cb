package pgbackrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/child"
)

// What pgbackrest ends with.
const (
	statusMissing    = 1   // of archive-get: the archive does not have the file
	statusDuplicate  = 45  // the archive has another file of that name
	statusStanza     = 28  // it is that of another server
	statusRepository = 103 // something is wrong with where it is kept; the text says what
	statusNoDatabase = 80  // of restore: the copy does not have a database that was named
	infoOther        = 99  // of a repository in "info": likewise
)

// failure is what a call of the program ended with.
type failure struct {
	command string
	status  int
	says    string // in one line, without secrets
	kinds   []string
}

func newFailure(command string, status int, complaint string) *failure {
	f := &failure{command: command, status: status, says: spoken(complaint)}
	for _, kind := range kindPattern.FindAllStringSubmatch(complaint[:min(len(complaint), mostSaid)], -1) {
		f.kinds = append(f.kinds, kind[1])
	}
	return f
}

// kindPattern is how the program names a kind of error within a text.
var kindPattern = regexp.MustCompile(`\[([A-Z][A-Za-z]+Error)\]`)

func (f *failure) Error() string { return fmt.Sprintf("pgbackrest %s: %s", f.command, f.says) }

// Is reports that the failure says that there is something else.
func (f *failure) Is(err error) bool {
	return err == archive.ErrOther &&
		(f.status == statusDuplicate || f.status == statusStanza || slices.Contains(f.kinds, "ArchiveMismatchError"))
}

// away reports whether where the archive is kept did not answer, or not as it should. It has answered where what it has cannot be
// understood: another passphrase makes that of one file in some hundreds, and of all others a CryptoError.
func (f *failure) away() bool {
	return f.status == statusRepository && !f.Is(archive.ErrOther) && !slices.Contains(f.kinds, "FormatError") ||
		slices.ContainsFunc(f.kinds, func(kind string) bool {
			return kind == "HostConnectError" || kind == "FileReadError" || kind == "ProtocolError"
		})
}

// IsAway implements archive.Engine.
func (e *Engine) IsAway(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.away() || errors.Is(err, context.DeadlineExceeded)
}

// mostSaid bounds what is kept of an output, and of a complaint in it.
const (
	mostSaid      = 8 << 10
	mostComplaint = 400
)

// run runs a command of the program, and returns what it wrote.
func (e *Engine) run(ctx context.Context, command string, args ...string) ([]byte, error) {
	return e.finish(ctx, exec.CommandContext(ctx, e.s.Program, e.args(command, args...)...), command)
}

// runHeard is run for a command whose output is read line by line.
func (e *Engine) runHeard(ctx context.Context, hear func(line string), command string, args ...string) error {
	cmd := exec.CommandContext(ctx, e.s.Program, e.args(command, args...)...)
	lines := &heard{hear: hear}
	cmd.Stdout = lines
	_, err := e.finish(ctx, cmd, command)
	return err
}

// heard passes whole lines on.
type heard struct {
	hear func(line string)
	rest []byte
}

func (h *heard) Write(p []byte) (int, error) {
	h.rest = append(h.rest, p...)
	for {
		line, rest, whole := bytes.Cut(h.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		h.hear(string(line))
		h.rest = rest
	}
}

// runUnsynced is run for a command whose files are of no use any more once the agent has ended: with some hundred thousand of
// them, the wait for the disk is all that takes time.
func (e *Engine) runUnsynced(ctx context.Context, command string, args ...string) error {
	_, err := e.finish(ctx, child.Unsynced(ctx, e.s.Program, e.args(command, args...)...), command)
	return err
}

func (e *Engine) finish(ctx context.Context, cmd *exec.Cmd, command string) ([]byte, error) {
	if err := e.refreshed(); err != nil {
		return nil, err
	}
	cmd.Env = e.env()
	cmd.Dir = "/"
	cmd.SysProcAttr = child.Attributes(e.s.As)
	// With those that it has started: one that is left holds the lock. Nothing is lost: the next call goes on.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killAfter
	var out bytes.Buffer
	complaint := &bounded{most: mostSaid}
	if cmd.Stderr = complaint; cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return nil, newFailure(command, exit.ExitCode(), complaint.String())
	}
	return nil, err
}

// killAfter is how long the pipes of a killed program may stay open.
const killAfter = time.Second

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

func (e *Engine) args(command string, args ...string) []string {
	return slices.Concat([]string{"--config=" + e.path(configFile), "--stanza=" + stanza, command}, args)
}

func (e *Engine) env() []string {
	return []string{
		"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PGPASSFILE=" + e.path("pgpass"),
		"PGHOST=" + e.s.Postgres.Host, "PGSSLMODE=disable", // the program has an option for sockets only
	}
}

// spoken is a complaint in one line. What follows on stars is left out: there are requests with signatures.
func spoken(complaint string) string {
	complaint, _, _ = strings.Cut(complaint, "*** ")
	var words []string
	for line := range strings.Lines(strings.ToValidUTF8(complaint, "?")) {
		if strings.HasPrefix(strings.TrimSpace(line), "HINT:") {
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	said := strings.Join(words, " ")
	if _, after, found := strings.Cut(said, "ERROR: "); found {
		said = after
	}
	if said == "" {
		return "it says nothing"
	}
	if runes := []rune(said); len(runes) > mostComplaint {
		return string(runes[:mostComplaint]) + "..."
	}
	return said
}
