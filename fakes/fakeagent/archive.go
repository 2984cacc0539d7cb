package fakeagent

import (
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// archive has all that the server's databases have held since they were made, isolated ones too, until they are purged.
type archive struct {
	off  bool // the server keeps none
	key  string
	gaps []recovery.Gap
	kept map[id.DatabaseID][]kept
}

// kept is what a database held from a time on.
type kept struct {
	since time.Time
	held  held
}

// SetArchiving has the server keep an archive, as it does at first, or none.
func (s *Server) SetArchiving(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archive.off = !on
}

// SetArchiveKey has the archive be encrypted with a key; empty: it has none.
func (s *Server) SetArchiveKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archive.key = key
}

// ArchiveKey is the key that the archive has; empty: none.
func (s *Server) ArchiveKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.archive.key
}

// archived is what the agent says of the archive; nil where the server keeps none.
func (s *Server) archived() *command.Archive {
	switch {
	case s.archive.off:
		return nil
	case s.archive.key == "":
		return &command.Archive{}
	}
	return &command.Archive{KeyMark: command.ArchiveKeyMark(s.archive.key)}
}

func (s *Server) setArchiveKey(q command.SetArchiveKey) error {
	switch err := q.Check(); {
	case err != nil:
		return err
	case s.archive.off:
		return command.Refuse(command.ReasonInvalid, "this server keeps no archive")
	case s.archive.key != "" && s.archive.key != q.Key:
		return command.Refuse(command.ReasonConflict, "the archive is encrypted with another key")
	}
	s.archive.key = q.Key
	return nil
}

// LoseSegments takes out of the archive what was written between two times, which are after those of any call before.
func (s *Server) LoseSegments(from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archive.gaps = append(s.archive.gaps, recovery.Gap{From: from, To: to, Reason: recovery.SegmentsMissing})
}

// ForgetArchived has the archive lack a database.
func (s *Server) ForgetArchived(db id.DatabaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.archive.kept, db)
}

// mostKept bounds what the archive has of a database: what was before is over.
const mostKept = 1000

// remember has the archive know what a database holds from now on.
func (s *Server) remember(d *databaseState) {
	all := append(s.archive.kept[d.id], kept{s.clock.Now(), holdingOf(d)})
	s.archive.kept[d.id] = all[max(0, len(all)-mostKept):]
}

// window is that of a database; a clone has none before it is filled.
func (s *Server) window(db id.DatabaseID) command.RecoverableTime {
	all := s.archive.kept[db]
	if s.archive.off || len(all) == 0 {
		return command.RecoverableTime{Archived: !s.archive.off}
	}
	return command.RecoverableTime{Archived: true, Window: recovery.Window{
		From: all[0].since, To: s.clock.Now(), Gaps: slices.Clone(s.archive.gaps),
	}}
}

// then returns what a database held at a time; nil and the reason where the archive does not have it.
func (s *Server) then(db id.DatabaseID, at time.Time) (*held, string) {
	var no *fault.Error
	if err := s.window(db).Window.Check(at, s.clock.Now()); errors.As(err, &no) {
		return nil, no.Message
	}
	var found *held
	for _, one := range s.archive.kept[db] {
		if !one.since.After(at) {
			found = &one.held
		}
	}
	return found, ""
}
