package fakeagent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/ports"
)

type fileKey struct {
	database id.DatabaseID
	filename backup.Filename
	passing  bool
}

func keyOf(c command.Backup) fileKey {
	return fileKey{database: c.DatabaseID, filename: c.Filename, passing: c.Passing}
}

type file struct {
	content, manifest []byte
	held              held
	verifiedAt        *time.Time
}

// held is what a database holds, as a backup keeps it and a restore brings it back.
type held struct {
	contents   string
	extensions map[extension.Name]installed
}

func holdingOf(d *databaseState) held { return held{d.contents, maps.Clone(d.extensions)} }

// job is a backup under way or finished.
type job struct {
	spec     command.Backup
	snapshot string // the dump's SQL text, as of the first call
	held     held   // likewise
	report   command.BackupReport
}

func (s *Server) advance(op id.OperationID, d *databaseState, spec command.Backup) command.BackupReport {
	j, begun := s.jobs[op]
	if !begun {
		j = &job{
			spec: spec, snapshot: dump(d.name, d.contents), held: holdingOf(d),
			report: command.BackupReport{
				State: command.BackupRunning, Stage: backup.Dumping, Bytes: command.Bytes{Total: d.bytes()},
			},
		}
		s.jobs[op] = j
		if spec.Followed {
			s.keepChanges(op, d)
		}
		return j.report
	}
	switch {
	case j.report.State != command.BackupRunning:
	case j.report.Stage == backup.Dumping && s.faults.storageFull:
		j.report = command.BackupReport{
			State: command.BackupFailed, Reason: command.ReasonStorageFull, Message: "the server has no room for the backup",
		}
	case j.report.Stage == backup.Dumping && s.faults.holdDumps:
		j.report.Progress = 50
	case s.faults.storage != "" && !j.spec.Passing:
		j.report.Stage, j.report.Progress = "storing", 60
	case j.report.Stage == backup.Dumping, j.report.Stage == "storing":
		s.store(op, j)
	default:
		s.verify(j)
	}
	return j.report
}

// recoverThen has the database back as it was, out of the archive, and then goes on as a backup. It may be out of service.
func (s *Server) recoverThen(op id.OperationID, c command.Backup) (any, error) {
	d, j := s.databases[c.DatabaseID], s.jobs[op]
	switch {
	case d == nil:
		return nil, errNoDatabase(c.DatabaseID)
	case j == nil && s.archive.off:
		return nil, command.Refuse(command.ReasonNotRecoverable, "the server keeps no archive")
	case j == nil:
		j = &job{spec: c, report: command.BackupReport{State: command.BackupRunning, Stage: recovery.Fetching}}
		s.jobs[op] = j
		return j.report, nil
	case j.report.Stage == recovery.Fetching:
		j.report.Stage, j.report.Progress = recovery.Replaying, 20
		return j.report, nil
	case j.report.Stage != recovery.Replaying:
		return s.advance(op, d, c), nil
	}
	was, why := s.then(c.DatabaseID, *c.At)
	if was == nil {
		j.report = command.BackupReport{State: command.BackupFailed, Stage: "done", Reason: command.ReasonNotRecoverable, Message: why}
		return j.report, nil
	}
	j.snapshot, j.held = dump(d.name, was.contents), held{was.contents, maps.Clone(was.extensions)}
	j.report.Stage, j.report.Progress = backup.Dumping, 40
	return j.report, nil
}

func (s *Server) store(op id.OperationID, j *job) {
	content := compress(j.snapshot)
	if most := j.spec.MaxBytes; most > 0 && int64(len(content)) > most {
		j.report = command.BackupReport{
			State: command.BackupFailed, Reason: command.ReasonStorageFull, Message: backup.TooLarge(most).Message,
		}
		return
	}
	manifest := manifestOf(op, j.spec, j.snapshot, content)
	s.files[keyOf(j.spec)] = &file{content: content, manifest: manifest, held: j.held}
	j.report.SizeBytes, j.report.ChecksumSHA256 = int64(len(content)), sum(content)
	j.report.ManifestSHA256, j.report.RoleManifest = sum(manifest), true
	j.report.Stage, j.report.Progress, j.report.Bytes = "verifying", 60, command.Bytes{Total: j.report.SizeBytes}
	if !j.spec.Verify {
		j.report.State, j.report.Stage, j.report.Progress, j.report.Bytes = command.BackupDone, "done", 100, command.Bytes{}
	}
}

func (s *Server) verify(j *job) {
	j.report.Stage, j.report.Progress, j.report.Bytes = "done", 100, command.Bytes{}
	if message := s.faults.notVerified; message != "" {
		j.report.State, j.report.Message = command.BackupNotVerified, message
		return
	}
	now := s.clock.Now()
	j.report.State, j.report.VerifiedAt = command.BackupDone, &now
	if f := s.files[keyOf(j.spec)]; f != nil {
		f.verifiedAt = &now
	}
}

// abandon ends the work that is under way, and leaves nothing of it, nor what was made for it alone.
func (s *Server) abandon(op id.OperationID) {
	delete(s.extensionJobs, op)
	delete(s.restores, op)
	delete(s.looks, op)
	s.undoMove(op)
	for of, d := range s.databases {
		if d.madeBy == op && d.empty {
			delete(s.databases, of)
			s.forgetTold(of)
		}
	}
	j := s.jobs[op]
	if j == nil || j.over() && !j.passes() {
		return
	}
	delete(s.files, keyOf(j.spec))
	delete(s.jobs, op)
}

// passes reports whether the file is its operation's alone. For a deletion, that is so until the database is isolated.
func (j *job) passes() bool { return j.spec.Passing || j.spec.ForDeletion }

// over reports whether there is a file, with all that was to be done to it.
func (j *job) over() bool {
	return j.report.State == command.BackupDone || j.report.State == command.BackupNotVerified
}

// dump is the SQL text of a database, as a customer would find it in the file.
func dump(name, contents string) string {
	return fmt.Sprintf("--\n-- PostgreSQL database dump of %s\n--\n\nSET standard_conforming_strings = on;\n\n%s\n"+
		"--\n-- PostgreSQL database dump complete\n--\n", name, contents)
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func compress(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// reread reads a backup at once, unless readings are held.
func (s *Server) reread(q command.RereadBackup) (command.BackupReading, error) {
	if s.reading != nil && *s.reading != q {
		return command.BackupReading{}, command.Refuse(command.ReasonCrowded, "the backup %s is being read", s.reading.Filename)
	}
	if s.reading = nil; s.faults.holdReadings {
		s.reading = &q
		return command.BackupReading{State: command.ReadingRunning}, nil
	}
	if away := s.faults.storage; away != "" {
		return command.BackupReading{State: command.ReadingUnsure, Why: away}, nil
	}
	f := s.files[fileKey{database: q.DatabaseID, filename: q.Filename}]
	if f == nil {
		return command.BackupReading{State: command.ReadingDamaged, Why: "its record is gone"}, nil
	}
	m, err := backup.ParseManifest(f.manifest)
	if sound := err == nil && m.SHA256 == q.ManifestSHA256 && m.File.SHA256 == sum(f.content); !sound {
		return command.BackupReading{State: command.ReadingDamaged, Why: "its data: it is not what its manifest says"}, nil
	}
	return command.BackupReading{State: command.ReadingWhole, VerifiedAt: f.verifiedAt}, nil
}

// Rot changes a bit of the file of a backup as it is stored; a second time it changes it back. It reports whether there is such a
// file.
func (s *Server) Rot(db id.DatabaseID, filename backup.Filename) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[fileKey{database: db, filename: filename}]
	if f != nil {
		f.content = bytes.Clone(f.content)
		f.content[len(f.content)/2] ^= 1
	}
	return f != nil
}

func (s *Server) room() error {
	if s.faults.storageFull {
		return command.Refuse(command.ReasonStorageFull, "the server has no room for another backup")
	}
	return nil
}

func (s *Server) open(ctx context.Context, q command.Question) (ports.File, error) {
	var key fileKey
	content := func(f *file) []byte { return f.content }
	switch q := q.(type) {
	case command.OpenSnapshot:
		return s.openSnapshot(ctx, q)
	case command.OpenBackup:
		key = fileKey{database: q.DatabaseID, filename: q.Filename}
	case command.OpenRest:
		key = fileKey{database: q.DatabaseID, filename: q.Filename}
		content = func(f *file) []byte { return f.content[min(q.Offset, int64(len(f.content))):] }
	case command.OpenManifest:
		key = fileKey{database: q.DatabaseID, filename: q.Filename}
		content = func(f *file) []byte { return f.manifest }
	default:
		return ports.File{}, fmt.Errorf("fakeagent: no file is opened by %T", q)
	}
	if err := s.reaches(); err != nil {
		return ports.File{}, err
	}
	found := s.files[key]
	if found == nil {
		return ports.File{}, command.Refuse(command.ReasonNotFound, "there is no file %s", key.filename)
	}
	text := content(found)
	return ports.File{Body: &download{ctx: ctx, content: bytes.NewReader(text)}, Size: int64(len(text))}, nil
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
