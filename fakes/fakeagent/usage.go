package fakeagent

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/usage"
)

// Load is how much a database is used, all the time.
type Load struct {
	Active, Waiting int
	Queries         int64 // a second
}

// SetLoad has a database be used so much from now on. It reports whether there is such a database.
func (s *Server) SetLoad(name string, l Load) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.see()
	d := s.named(name)
	if d != nil {
		d.load = l
	}
	return d != nil
}

// ForgetUsage is what a restart of the agent does to what it has seen and nobody has asked for.
func (s *Server) ForgetUsage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = watched{instance: s.watched.instance + 1, began: s.clock.Now()}
}

// watched is what was seen of the databases.
type watched struct {
	instance int
	began    time.Time // of the stretch that is open
	first    int       // the number of the first one that is kept
	kept     []stretch
}

type stretch struct {
	usage.Stretch
	ended time.Time
}

// keepUsage is how long what nobody asks for is kept.
const keepUsage = 24 * time.Hour

// see closes stretches until now. All that is in service was looked at all the time.
func (s *Server) see() {
	w, now := &s.watched, s.clock.Now()
	if now.Sub(w.began) > keepUsage {
		w.first, w.kept, w.began = w.first+len(w.kept), nil, now.Add(-keepUsage)
	}
	for now.Sub(w.began) >= time.Millisecond {
		end := w.began.Add(min(usage.Every, now.Sub(w.began)))
		name := "fake" + strconv.Itoa(w.instance) + "." + strconv.Itoa(w.first+len(w.kept))
		one := stretch{usage.Stretch{Name: name, LastedMs: end.Sub(w.began).Milliseconds(), Databases: []usage.Seen{}}, end}
		for db, d := range s.databases {
			from := w.began
			if d.made.After(from) {
				from = d.made
			}
			if ms := end.Sub(from).Milliseconds(); ms > 0 && !d.isolated {
				one.Databases = append(one.Databases, usage.Seen{DatabaseID: db, Activity: usage.Activity{
					SeenMs: ms, ActiveMs: int64(d.load.Active) * ms, WaitingMs: int64(d.load.Waiting) * ms,
					ActivePeak: d.load.Active, WaitingPeak: d.load.Waiting, Queries: d.load.Queries * ms / 1000,
				}})
			}
		}
		slices.SortFunc(one.Databases, func(a, b usage.Seen) int { return cmp.Compare(a.DatabaseID, b.DatabaseID) })
		w.kept, w.began = append(w.kept, one), end
	}
}

// usage answers all at once. A position is the number of the stretch that follows.
func (s *Server) usage(q command.AskUsage) command.Used {
	s.see()
	w, position := &s.watched, "fake"+strconv.Itoa(s.watched.instance)+"."
	for n := range len(w.kept) + 1 {
		if q.After == position+strconv.Itoa(w.first+n) {
			w.kept, w.first = w.kept[n:], w.first+n
			break
		}
	}
	used := command.Used{Stretches: []usage.Stretch{}, Next: position + strconv.Itoa(w.first+len(w.kept))}
	for _, one := range w.kept {
		one.EndedMs = s.clock.Now().Sub(one.ended).Milliseconds()
		used.Stretches = append(used.Stretches, one.Stretch)
	}
	return used
}
