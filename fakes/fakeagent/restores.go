package fakeagent

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/restore"
)

// restoreJob is a restore: its copy, and what the switch has replaced.
type restoreJob struct {
	database id.DatabaseID
	report   command.LoadReport
	copy     held
	switched bool
	moves    bool  // it was made for a move
	moving   bool  // the switch was a step of a move
	replaced *held // until it is discarded
	upload   uploadKey
	tried    bool // it is a rehearsal, of which there is never a copy that becomes a database
}

// FailLoads makes copies differ from their backups, with this message; empty lets them succeed again.
func (s *Server) FailLoads(message string) { s.set(func(f *faults) { f.failLoads = message }) }

// BreakRehearsals has rehearsals find these; none lets them find nothing again.
func (s *Server) BreakRehearsals(found ...rehearsal.Break) {
	s.set(func(f *faults) { f.breaks = found })
}

// LeaveOut has loads of what moves leave this out, and say so.
func (s *Server) LeaveOut(notes ...string) { s.set(func(f *faults) { f.leftOut = notes }) }

// StayBusy makes the next n switches and isolations find the database busy.
func (s *Server) StayBusy(n int) { s.set(func(f *faults) { f.busy = n }) }

// Copies counts what restores have on the server beside the databases: copies, and what was replaced and is not dropped yet.
func (s *Server) Copies() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.restores {
		if !r.switched && (!r.tried || r.report.State != command.LoadReady) || r.replaced != nil {
			n++
		}
	}
	return n
}

// Files counts the files of backups, with those that nobody lists.
func (s *Server) Files() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files)
}

// load does a part of the work with each call: it begins, it reads the file once that is there, and it compares.
func (s *Server) load(op id.OperationID, d *databaseState, c command.Load) (command.LoadReport, error) {
	if r := s.restores[op]; c.Source.AtPeer && r != nil && r.report.State != command.LoadRunning {
		return r.report, nil
	}
	if c.Source.Upload == "" && !c.Source.Passing && s.restores[op] == nil {
		if err := s.reaches(); err != nil {
			return command.LoadReport{}, err
		}
	}
	source, why, reason := s.sourceOf(op, c)
	if source == nil && !c.Source.AtPeer {
		return command.LoadReport{}, command.Refuse(command.ReasonNotFound, "there is no such file or upload")
	}
	if !s.mapped(d, c) {
		return command.LoadReport{}, command.Refuse(command.ReasonInvalid, "the owner of the other database is not named")
	}
	r := s.restores[op]
	if r == nil {
		r = &restoreJob{
			database: c.DatabaseID, report: command.LoadReport{State: command.LoadRunning, Stage: "loading"},
			upload: uploadKey{c.Source.DatabaseID, c.Source.Upload}, tried: c.Rehearsal, moves: c.Moving,
		}
		s.restores[op] = r
		return r.report, nil
	}
	if s.faults.failLoads != "" && !c.Rehearsal {
		why, reason = s.faults.failLoads, command.ReasonInvalid
	}
	switch {
	case r.report.State != command.LoadRunning:
	case why != "":
		r.report = command.LoadReport{
			State: command.LoadFailed, Stage: "done", Progress: 100, Reason: reason, Message: why,
		}
	case source == nil: // the peer is not done with it
	case r.report.Stage == "loading":
		r.copy = *source
		r.report.Stage, r.report.Progress = "comparing", 90
	case c.Rehearsal:
		r.report = command.LoadReport{
			State: command.LoadReady, Stage: "done", Progress: 100, Breaks: rehearsal.Bounded(s.broken()), Notes: s.faults.leftOut,
		}
	default:
		r.report.State, r.report.Stage, r.report.Progress = command.LoadReady, "done", 100
		r.report.SizeBytes = emptyDatabase + int64(len(r.copy.contents))
		r.report.Change = &restore.Change{
			Tables: restore.Count{Before: tablesOf(d.contents), After: tablesOf(r.copy.contents)},
			Rows:   restore.Count{Before: rowsOf(d.contents), After: rowsOf(r.copy.contents)},
		}
		if c.Source.AcceptIncomplete && incomplete(r.copy.contents, false) != "" {
			r.report.Notes = []string{"the upload may be a part of a dump only"}
		}
		if c.Moving {
			r.report.Notes = s.faults.leftOut
		}
	}
	return r.report, nil
}

// broken is what rehearsals find: a load that would fail is a break.
func (s *Server) broken() []rehearsal.Break {
	if why := s.faults.failLoads; why != "" {
		return []rehearsal.Break{{Kind: rehearsal.Different, What: why, Remedy: "change it"}}
	}
	return s.faults.breaks
}

// tablesOf and rowsOf count the statements that make a table or a row.
func tablesOf(contents string) int64 { return int64(strings.Count("\n"+contents, "\nCREATE TABLE ")) }
func rowsOf(contents string) int64   { return int64(strings.Count("\n"+contents, "\nINSERT INTO ")) }

// mapped reports whether the owner of a file's database is named to be that of the copy, where they are two.
func (s *Server) mapped(of *databaseState, c command.Load) bool {
	from := s.databases[c.Source.DatabaseID]
	return from == nil || from == of || slices.Contains(c.Names, command.Renaming{From: from.name, To: of.name})
}

// sourceOf returns what a copy is made of, nil where it is not there, and why it cannot be.
func (s *Server) sourceOf(op id.OperationID, c command.Load) (source *held, why string, reason command.Reason) {
	if c.Source.Upload != "" {
		u := s.uploads[uploadKey{c.Source.DatabaseID, c.Source.Upload}]
		if u == nil {
			return nil, "", ""
		}
		text, why := u.uploaded(c.Source)
		reason = command.ReasonInvalid
		if why == "" {
			why, reason = incomplete(text, c.Source.AcceptIncomplete), command.ReasonIncomplete
		}
		return &held{text, make(map[extension.Name]installed)}, why, reason
	}
	found := s.files[fileKey{c.Source.DatabaseID, c.Source.Filename, c.Source.Passing}]
	if c.Source.AtPeer {
		at, no := s.fileAt(op, c.Peer, c.Source.Filename)
		if no != nil {
			return nil, no.Message, no.Reason
		}
		found = at
	}
	if found == nil {
		return nil, "", ""
	}
	if c.Source.ManifestSHA256 != "" && c.Source.ManifestSHA256 != sum(found.manifest) {
		why = "the manifest is not the one that was made with the backup"
	}
	if m, err := backup.ParseManifest(found.manifest); err == nil && m.File.SHA256 != sum(found.content) {
		why = "the file is damaged: its SHA-256 is not the manifest's"
	}
	return &held{found.held.contents, maps.Clone(found.held.extensions)}, why, command.ReasonInvalid
}

func (s *Server) replace(op id.OperationID, d *databaseState, c command.Switch) (command.Switched, error) {
	r := s.restores[op]
	if r == nil || r.tried || r.report.State != command.LoadReady {
		return command.Switched{}, command.Refuse(command.ReasonNotFound, "the operation has no copy that is ready")
	}
	if c.Moving && !r.moves {
		return command.Switched{}, command.Refuse(command.ReasonInvalid, "the copy was not made for a move")
	}
	if s.faults.busy > 0 {
		s.faults.busy--
		clear(d.sessions) // they are ended all the same
		return command.Switched{}, command.Refuse(command.ReasonBusy, "sessions of the database cannot be ended")
	}
	replaced := holdingOf(d)
	r.switched, r.moving, r.replaced = true, c.Moving, &replaced
	clear(d.sessions)
	s.lastOID++
	d.oid, d.contents, d.extensions, d.size = firstOID+s.lastOID, r.copy.contents, r.copy.extensions, 0
	d.open, d.empty, d.spread = c.Open, c.Moving, d.overlay // groups have their rights in the copy
	d.inForce(c.Passwords)
	s.takeBack(d)
	s.remember(d)
	return command.Switched{DatabaseOID: d.oid, SizeBytes: d.bytes()}, nil
}

func (s *Server) discard(op id.OperationID) (none command.None, err error) {
	r := s.restores[op]
	if r == nil || !r.switched {
		return none, command.Refuse(command.ReasonNotFound, "the operation has switched nothing")
	}
	r.replaced = nil
	if j := s.jobs[op]; j != nil && j.spec.Passing {
		delete(s.files, keyOf(j.spec))
	}
	return none, nil
}

// SwapManifest replaces the manifest of a backup behind the platform's back. It reports whether there is such a backup.
func (s *Server) SwapManifest(db id.DatabaseID, filename backup.Filename) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[fileKey{database: db, filename: filename}]
	if f != nil {
		f.manifest = []byte("another")
	}
	return f != nil
}
