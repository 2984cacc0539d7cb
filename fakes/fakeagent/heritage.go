package fakeagent

import (
	"maps"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Storage is where the server keeps backups, as command.Inherit has it.
func (s *Server) Storage() string { return "kept/" + s.installation }

// inherit looks what another server of the fleet has left, reachable or not.
func (s *Server) inherit(q command.Inherit) (found command.Heritage, err error) {
	if err := q.Check(); err != nil {
		return found, err
	}
	if q.Storage == s.Storage() {
		return found, command.Refuse(command.ReasonInvalid, "%q is where this agent keeps its own backups", q.Storage)
	}
	s.heritage[q.Installation] = q
	if !s.archive.off && s.archive.key == "" {
		return found, command.Refuse(command.ReasonUnavailable, "the archive of this server is not ready")
	}
	lost := s.leftBy(q)
	if lost == nil {
		found.WhyNoBackups = "that server kept no backups there"
	}
	if found.Why = s.notReadable(lost, q); found.Why == "" {
		now := s.clock.Now()
		found.Until = &now
	}
	return found, nil
}

// leftBy is the server that has left something where it is said to be; nil: there is none. What it has is to be locked.
func (s *Server) leftBy(q command.Inherit) *Server {
	if lost := s.fleet.called(q.Installation); lost != nil && lost.Storage() == q.Storage {
		return lost
	}
	return nil
}

// notReadable says why the archive of a server cannot be read; empty: it can.
func (s *Server) notReadable(lost *Server, q command.Inherit) string {
	switch {
	case s.archive.off:
		return "this server keeps no archive itself, and so has no program to read that one with"
	case lost == nil:
		return "there is no archive of the server"
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	switch {
	case lost.archive.off, lost.archive.key == "":
		return "there is no archive of the server"
	case lost.archive.key != q.Key:
		return "the archive is encrypted with another key"
	}
	return ""
}

// called is the server of an installation; nil where there is none.
func (f *Fleet) called(installation string) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		if s.installation == installation {
			return s
		}
	}
	return nil
}

// inherited is what Inherit has said of a server.
func (s *Server) inherited(installation string) (command.Inherit, error) {
	q, is := s.heritage[installation]
	if !is {
		return q, command.Refuse(command.ReasonNotRecoverable, "nobody has said what the server %s has left", installation)
	}
	return q, nil
}

// recoverLost has a database back as it was last on a server that is gone, and then goes on as a backup.
func (s *Server) recoverLost(op id.OperationID, c command.Backup) (any, error) {
	d, j := s.databases[c.DatabaseID], s.jobs[op]
	if d == nil {
		return nil, errNoDatabase(c.DatabaseID)
	}
	q, err := s.inherited(c.Lost)
	if err != nil {
		return nil, err
	}
	lost := s.leftBy(q)
	switch {
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
	if why := s.notReadable(lost, q); why != "" {
		j.report = command.BackupReport{State: command.BackupFailed, Stage: "done", Reason: command.ReasonNotRecoverable, Message: why}
		return j.report, nil
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	all := lost.archive.kept[c.DatabaseID]
	if len(all) == 0 {
		j.report = command.BackupReport{
			State: command.BackupFailed, Stage: "done", Reason: command.ReasonNotFound,
			Message: "the archive of the server that is gone does not have the database",
		}
		return j.report, nil
	}
	last := all[len(all)-1]
	j.snapshot, j.held = dump(d.name, last.held.contents), held{last.held.contents, maps.Clone(last.held.extensions)}
	j.report.Stage, j.report.Progress, j.report.AsOf = backup.Dumping, 40, &last.since
	return j.report, nil
}

// adopt takes a backup over at once.
func (s *Server) adopt(q command.AdoptBackup) (command.BackupReading, error) {
	if err := q.Check(); err != nil {
		return command.BackupReading{}, err
	}
	if away := s.faults.storage; away != "" {
		return command.BackupReading{State: command.ReadingUnsure, Why: away}, nil
	}
	key := fileKey{database: q.DatabaseID, filename: q.Filename}
	if err := s.copyFile(key, q); err != nil {
		return command.BackupReading{}, err
	}
	if s.files[key] == nil {
		return command.BackupReading{State: command.ReadingDamaged, Why: "it is not there"}, nil
	}
	if sum(s.files[key].manifest) != q.ManifestSHA256 {
		return command.BackupReading{State: command.ReadingDamaged, Why: "its manifest is another one"}, nil
	}
	return command.BackupReading{State: command.ReadingWhole}, nil
}

// copyFile copies the file of a backup, where this server does not have it, from a peer or from a server that is gone.
func (s *Server) copyFile(key fileKey, q command.AdoptBackup) error {
	copied := func(from *Server) {
		if f := from.files[key]; f != nil && s.files[key] == nil {
			own := *f
			s.files[key] = &own
		}
	}
	if q.Lost == "" {
		return s.withPeer(q.Operation, q.Peer, func(from *Server, _ *move) error {
			copied(from)
			return nil
		})
	}
	left, err := s.inherited(q.Lost)
	if err != nil {
		return err
	}
	if lost := s.leftBy(left); lost != nil {
		lost.mu.Lock()
		defer lost.mu.Unlock()
		copied(lost)
	}
	return nil
}
