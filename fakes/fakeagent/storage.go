package fakeagent

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// bytes is the size of a database: what was set, or that of an empty one and what was loaded.
func (d *databaseState) bytes() int64 { return cmp.Or(d.size, emptyDatabase+int64(len(d.contents))) }

// SetSize makes a database as large as a customer may; 0: as it is. It reports whether there is such a database.
func (s *Server) SetSize(name string, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(name)
	if d != nil {
		d.size = bytes
	}
	return d != nil
}

// ForgetSizes is what a restart of the agent does.
func (s *Server) ForgetSizes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = sizes{instance: s.sizes.instance + 1}
}

// sizes is what was measured. A position names the instance of the agent and the number of the last change.
type sizes struct {
	instance int
	number   int64
	known    map[id.DatabaseID]measured
}

type measured struct{ bytes, number int64 }

// storageUse measures all, where a real agent does so unasked.
func (s *Server) storageUse(q command.StorageUse) command.StorageUsed {
	if s.sizes.known == nil {
		s.sizes.known = map[id.DatabaseID]measured{}
	}
	for db, d := range s.databases {
		if d.isolated {
			continue
		}
		if known, was := s.sizes.known[db]; !was || known.bytes != d.bytes() {
			s.sizes.number++
			s.sizes.known[db] = measured{d.bytes(), s.sizes.number}
		}
	}
	after := int64(0)
	for n := range s.sizes.number + 1 {
		if q.After == s.position(n) {
			after = n
		}
	}
	return s.changedSince(after)
}

func (s *Server) changedSince(after int64) command.StorageUsed {
	var changed []id.DatabaseID
	for db, m := range s.sizes.known {
		if m.number > after {
			changed = append(changed, db)
		}
	}
	slices.SortFunc(changed, func(a, b id.DatabaseID) int { return cmp.Compare(s.sizes.known[a].number, s.sizes.known[b].number) })
	used := command.StorageUsed{Databases: []command.DatabaseUse{}, Next: s.position(s.sizes.number)}
	if used.More = len(changed) > command.UsesAtOnce; used.More {
		changed = changed[:command.UsesAtOnce]
		used.Next = s.position(s.sizes.known[changed[len(changed)-1]].number)
	}
	for _, db := range changed {
		used.Databases = append(used.Databases, command.DatabaseUse{DatabaseID: db, Bytes: s.sizes.known[db].bytes})
	}
	return used
}

func (s *Server) position(number int64) string {
	return "fake" + strconv.Itoa(s.sizes.instance) + "." + strconv.FormatInt(number, 10)
}

// SetStorage says what is wrong where backups are kept, so that none can be reached and new ones wait; empty: nothing is.
func (s *Server) SetStorage(wrong string) { s.set(func(f *faults) { f.storage = wrong }) }

// reaches refuses where backups cannot be reached.
func (s *Server) reaches() error {
	if s.faults.storage != "" {
		return command.Refuse(command.ReasonStorageAway, "where backups are kept does not answer")
	}
	return nil
}
