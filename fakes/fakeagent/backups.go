package fakeagent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type fileKey struct {
	database id.DatabaseID
	filename string
}

type file struct{ content []byte }

// job is a backup under way or finished.
type job struct {
	spec     ports.BackupSpec
	snapshot string // the dump's SQL text, as of the first call
	report   ports.BackupReport
}

// Backup implements ports.BackupAgent. Each call takes a backup one step further: snapshot, file, verification.
func (a agent) Backup(ctx context.Context, f ports.Fence, spec ports.BackupSpec) (report ports.BackupReport, err error) {
	call := Call{Method: "Backup", Fence: f, Database: spec.DatabaseID, Filename: spec.Filename}
	err = a.s.answer(ctx, call, func() error {
		key := commandKey{kind: "backup", resource: string(spec.DatabaseID), generation: 1}
		if _, err := a.s.ledger.admit(f, key, spec); err != nil {
			return err
		}
		d, err := a.s.standing(spec.DatabaseID)
		if err != nil {
			return err
		}
		report = a.s.advance(f.OperationID, d, spec)
		return nil
	})
	if err != nil {
		return ports.BackupReport{}, err
	}
	return report, nil
}

func (s *Server) advance(op id.OperationID, d *databaseState, spec ports.BackupSpec) ports.BackupReport {
	j, begun := s.jobs[op]
	if !begun {
		j = &job{spec: spec, snapshot: dump(d), report: ports.BackupReport{State: ports.BackupRunning, Stage: "dumping"}}
		s.jobs[op] = j
		return j.report
	}
	switch {
	case j.report.State != ports.BackupRunning:
	case j.report.Stage == "dumping" && s.faults.storageFull:
		j.report = ports.BackupReport{
			State: ports.BackupFailed, Reason: ports.ReasonStorageFull, Message: "the server has no room for the backup",
		}
	case j.report.Stage == "dumping":
		s.store(j)
	default:
		s.verify(j)
	}
	return j.report
}

func (s *Server) store(j *job) {
	content := compress(j.snapshot)
	sum := sha256.Sum256(content)
	s.files[fileKey{j.spec.DatabaseID, j.spec.Filename}] = &file{content}
	j.report.SizeBytes, j.report.ChecksumSHA256 = int64(len(content)), hex.EncodeToString(sum[:])
	j.report.RoleManifest = true
	j.report.Stage, j.report.Progress = "verifying", 60
	if !j.spec.Verify {
		j.report.State, j.report.Stage, j.report.Progress = ports.BackupDone, "done", 100
	}
}

func (s *Server) verify(j *job) {
	j.report.Stage, j.report.Progress = "done", 100
	if message := s.faults.notVerified; message != "" {
		j.report.State, j.report.Message = ports.BackupNotVerified, message
		return
	}
	now := s.clock.Now()
	j.report.State, j.report.VerifiedAt = ports.BackupDone, &now
}

// abandon ends a backup that is under way and leaves no file of it.
func (s *Server) abandon(op id.OperationID) {
	j := s.jobs[op]
	if j == nil || j.report.State != ports.BackupRunning {
		return
	}
	delete(s.files, fileKey{j.spec.DatabaseID, j.spec.Filename})
	delete(s.jobs, op)
}

// dump is the SQL text of a database, as a customer would find it in the file.
func dump(d *databaseState) string {
	return fmt.Sprintf("--\n-- PostgreSQL database dump of %s\n--\n\nSET standard_conforming_strings = on;\n\n%s\n"+
		"--\n-- PostgreSQL database dump complete\n--\n", d.spec.Name, d.contents)
}

func compress(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// RoomForBackup implements ports.BackupAgent.
func (a agent) RoomForBackup(ctx context.Context, db id.DatabaseID) error {
	return a.s.newerRoute(ctx, Call{Method: "RoomForBackup", Database: db}, func() error {
		if _, err := a.s.standing(db); err != nil {
			return err
		}
		if a.s.faults.storageFull {
			return refuse(ports.ReasonStorageFull, "the server has no room for another backup")
		}
		return nil
	})
}

// DeleteBackup implements ports.BackupAgent.
func (a agent) DeleteBackup(ctx context.Context, db id.DatabaseID, filename string) error {
	return a.s.newerRoute(ctx, Call{Method: "DeleteBackup", Database: db, Filename: filename}, func() error {
		delete(a.s.files, fileKey{db, filename})
		return nil
	})
}

// OpenBackup implements ports.BackupAgent.
func (a agent) OpenBackup(ctx context.Context, db id.DatabaseID, filename string) (ports.BackupFile, error) {
	var found *file
	err := a.s.newerRoute(ctx, Call{Method: "OpenBackup", Database: db, Filename: filename}, func() error {
		found = a.s.files[fileKey{db, filename}]
		if found == nil {
			return refuse(ports.ReasonNotFound, "there is no file %s", filename)
		}
		return nil
	})
	if err != nil {
		return ports.BackupFile{}, err
	}
	body := &download{ctx: ctx, content: bytes.NewReader(found.content)}
	return ports.BackupFile{Body: body, Size: int64(len(found.content))}, nil
}

// newerRoute is answer for what an old agent does not know.
func (s *Server) newerRoute(ctx context.Context, c Call, do func() error) error {
	return s.answer(ctx, c, func() error {
		if s.faults.oldAgent {
			return refuse(ports.ReasonNoRoute, "the agent does not know this command")
		}
		return do()
	})
}

// download ends with its context.
type download struct {
	ctx     context.Context
	content *bytes.Reader
}

func (d *download) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.content.Read(p)
}

func (d *download) Close() error { return nil }
