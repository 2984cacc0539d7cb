package fakeagent

import (
	"maps"

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
	lost := s.fleet.called(q.Installation)
	if lost == nil || q.Storage != lost.Storage() {
		found.Why, found.WhyNoBackups = "there is no archive of the server", "that server kept no backups there"
		return found, nil
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	switch {
	case s.archive.off:
		found.Why = "this server keeps no archive itself, and so has no program to read that one with"
	case lost.archive.off, lost.archive.key == "":
		found.Why = "there is no archive of the server"
	case lost.archive.key != q.Key:
		found.Why = "the archive is encrypted with another key"
	default:
		now := s.clock.Now()
		found.Until = &now
	}
	return found, nil
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

func (s *Server) left(installation string) (*Server, error) {
	if _, told := s.heritage[installation]; !told {
		return nil, command.Refuse(command.ReasonNotFound, "nobody has said what the server %s has left", installation)
	}
	return s.fleet.called(installation), nil
}

// recoverLost has a database back as it was last on a server that is gone, and then goes on as a backup.
func (s *Server) recoverLost(op id.OperationID, c command.Backup) (any, error) {
	lost, err := s.left(c.Lost)
	d, j := s.databases[c.DatabaseID], s.jobs[op]
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, errNoDatabase(c.DatabaseID)
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
	j.report.Stage, j.report.Progress, j.report.AsOf = "dumping", 40, &last.since
	return j.report, nil
}

// adopt takes a backup over at once.
func (s *Server) adopt(q command.AdoptBackup) (command.BackupReading, error) {
	lost, err := s.left(q.Lost)
	if err != nil {
		return command.BackupReading{}, err
	}
	if away := s.faults.storage; away != "" {
		return command.BackupReading{State: command.ReadingUnsure, Why: away}, nil
	}
	key := fileKey{database: q.DatabaseID, filename: q.Filename}
	if s.files[key] == nil {
		lost.mu.Lock()
		f := lost.files[key]
		lost.mu.Unlock()
		if f == nil {
			return command.BackupReading{State: command.ReadingDamaged, Why: "it is not there"}, nil
		}
		s.files[key] = f
	}
	if sum(s.files[key].manifest) != q.ManifestSHA256 {
		return command.BackupReading{State: command.ReadingDamaged, Why: "its manifest is another one"}, nil
	}
	return command.BackupReading{State: command.ReadingWhole}, nil
}
