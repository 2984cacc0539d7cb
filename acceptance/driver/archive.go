package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// realArchive implements spec.Archive. The agent starts again for it.
type realArchive struct{ r *realService }

// Keep implements spec.Archive.
func (a realArchive) Keep(on bool) error {
	if err := a.r.agent.Stop(); err != nil {
		return err
	}
	if on {
		return a.r.agent.start()
	}
	return a.r.agent.start("--archive-socket", "")
}

// Lose implements spec.Archive: while no agent runs, segments are taken out of the object store and out of the agent's notes. It
// returns when the agent has found that, and has copied the server again.
func (a realArchive) Lose(from, to time.Time) error {
	ctx, cancel := soon()
	defer cancel()
	before := 0.0
	err := await(ctx, "the server is not copied", func() (_ bool, err error) {
		before, err = a.copied(ctx)
		return before > 0, err
	})
	if err != nil {
		return err
	}
	if _, err := a.endSegment(); err != nil { // with what was written before
		return err
	}
	time.Sleep(time.Until(to))
	last, err := a.endSegment()
	if err != nil {
		return err
	}
	err = await(ctx, "the segment is not stored", func() (bool, error) {
		notes, err := a.notes()
		return strings.Contains(notes, last), err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(a.r.agent.Stop(), a.remove(from, last), a.r.agent.Start()); err != nil {
		return err
	}
	return await(ctx, "the server is not copied again", func() (bool, error) {
		now, err := a.copied(ctx)
		return now > before, err
	})
}

// endSegment writes something, and has PostgreSQL hand over what it has written.
func (a realArchive) endSegment() (segment string, err error) {
	ended, err := query(a.r.Server.URL("postgres"), statementTime,
		"SELECT pg_create_restore_point('written')", "SELECT pg_walfile_name(pg_switch_wal())")
	if err != nil {
		return "", err
	}
	return ended[0], nil
}

// notes are what the agent has noted of segments, a line each: its name, and when it ended, in microseconds.
func (a realArchive) notes() (string, error) {
	text, err := os.ReadFile(a.notesFile())
	return string(text), err
}

func (a realArchive) notesFile() string { return filepath.Join(a.r.BackupDir(), "archive", "segments") }

// remove takes out the segments that ended in a second after from, up to one.
func (a realArchive) remove(from time.Time, last string) error {
	notes, err := a.notes()
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(notes) {
		segment, ended, _ := strings.Cut(strings.TrimSpace(line), " ")
		micros, err := strconv.ParseInt(ended, 10, 64)
		if err != nil || segment > last || !time.UnixMicro(micros).Truncate(time.Second).After(from) {
			kept.WriteString(line)
			continue
		}
		stored, err := filepath.Glob(filepath.Join(a.r.BlobDir(), "archive", "*", "archive", "*", "*", "*", segment+"-*"))
		if err == nil && len(stored) != 1 {
			err = fmt.Errorf("the store has %d of the segment %s", len(stored), segment)
		}
		if err != nil {
			return err
		}
		if err := os.Remove(stored[0]); err != nil {
			return err
		}
	}
	return os.WriteFile(a.notesFile(), []byte(kept.String()), 0o600)
}

var copiedAt = regexp.MustCompile(`(?m)^pgherd_agent_archive_copied_timestamp_seconds\{.*\} (\S+)$`)

// copied is when the newest copy of the server was made, in seconds, as the agent says every few; 0 where it does not yet.
func (a realArchive) copied(ctx context.Context) (float64, error) {
	text, err := a.r.AgentMetrics(ctx, a.r.agent.process)
	if err != nil {
		return 0, err
	}
	found := copiedAt.FindStringSubmatch(text)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseFloat(found[1], 64)
}

// key is what encrypts the archive; empty where the agent has not got it yet.
func (a realArchive) key() string {
	text, _ := os.ReadFile(filepath.Join(a.r.BackupDir(), "archive", "key"))
	return string(text)
}

// await asks again and again until something holds.
func await(ctx context.Context, what string, holds func() (bool, error)) error {
	for began := time.Now(); ; {
		if so, err := holds(); so || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New(what)
		case <-time.After(stack.Pause(time.Since(began))):
		}
	}
}
