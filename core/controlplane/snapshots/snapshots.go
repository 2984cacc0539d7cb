// Package snapshots has servers keep snapshots of the metadata, so that an installation can be made anew whose metadata are lost.
// Package core/snapshot says when one is due, and ports.Snapshots takes it.
package snapshots

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/ports"
)

const (
	// lookEvery is how often a process looks whether a snapshot is due. It asks nobody until it may be.
	lookEvery = 10 * time.Second
	// takeTime bounds one snapshot, from the metadata to all servers.
	takeTime = time.Hour
	// askTime bounds one question to a server.
	askTime = 30 * time.Second
	// againAfter is how long after a failure it is tried again.
	againAfter = time.Minute
)

// Snapshots takes snapshots and looks after them.
type Snapshots struct {
	base *base.Base

	mu        sync.Mutex
	last      snapshot.Last
	looked    bool   // last is what servers have said
	mark      string // of the metadata, before the last snapshot that this process took
	checkedAt time.Time
	failedAt  time.Time
}

// New makes it, and registers its periodic task, where the process can take snapshots.
func New(p *base.Base) *Snapshots {
	s := &Snapshots{base: p}
	if _, none := p.Snapshots.(ports.NoSnapshots); !none {
		rounds.Register(p.Rounds, rounds.Task{
			Name: "snapshots of the metadata", Every: lookEvery, Limit: takeTime, Work: brake.Schedules, Do: s.round,
		})
	}
	return s
}

// Newest is when the newest snapshot was taken that servers have said to keep; the zero time where they have said that there is
// none. False: they have not said anything yet, or there is no server.
func (s *Snapshots) Newest() (at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.At, s.looked
}

// round takes a snapshot that is due, and reads one back where that is due.
func (s *Snapshots) round(ctx context.Context, now time.Time) error {
	if !s.mayBeDue(now) {
		return nil
	}
	err := s.compare(ctx)
	if err == nil && s.isDue(now) {
		_, err = s.base.Snapshots.Turn(ctx, func(ctx context.Context) error { return s.inTurn(ctx, now) })
	}
	if err != nil {
		s.mu.Lock()
		s.failedAt = now
		s.mu.Unlock()
	}
	return err
}

func (s *Snapshots) inTurn(ctx context.Context, now time.Time) error {
	holders, err := s.base.Holders(ctx)
	if err != nil || len(holders) == 0 {
		return err
	}
	if err := s.look(ctx, holders); err != nil {
		return err
	}
	s.mu.Lock()
	due, readBack := s.last.Due(now), s.readBackDue(now)
	s.mu.Unlock()
	if due { // no other process has taken one meanwhile
		if _, err := s.take(ctx, now, holders); err != nil {
			return err
		}
	}
	if readBack {
		return s.check(ctx, now, holders)
	}
	return nil
}

// mayBeDue reports whether there may be something to do, as far as this process knows without asking anybody.
func (s *Snapshots) mayBeDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	last.Changed = true
	pauses := now.Sub(s.failedAt).Abs() < againAfter
	return !pauses && (last.Due(now) || s.readBackDue(now))
}

func (s *Snapshots) isDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Due(now) || s.readBackDue(now)
}

func (s *Snapshots) readBackDue(now time.Time) bool {
	return now.Sub(s.checkedAt).Abs() >= snapshot.CheckEvery
}

// compare asks whether the metadata have changed since the last snapshot that this process took.
func (s *Snapshots) compare(ctx context.Context) error {
	is, err := s.base.Snapshots.Changes(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Changed = is != s.mark
	return err
}

// look asks the servers which snapshot is the newest. One that is away says nothing.
func (s *Snapshots) look(ctx context.Context, holders []server.Server) error {
	of, err := s.base.Snapshots.Installation(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var newest snapshot.Name
	var answers int
	s.each(holders, func(h server.Server) {
		name, err := s.newestOn(ctx, h, of)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			newest, answers = max(newest, name), answers+1
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if answers == 0 {
		return nil // taking one tells why
	}
	s.last.At, s.looked = newest.At(), true
	return nil
}

func (s *Snapshots) newestOn(ctx context.Context, h server.Server, of id.InstallationID) (snapshot.Name, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	agent, err := s.base.Fleet.Agent(h)
	if err != nil {
		return "", err
	}
	kept, err := ports.Ask(ctx, agent, command.AskSnapshots{})
	return kept.Newest(of), err
}

// each does something with all servers at a time.
func (*Snapshots) each(holders []server.Server, do func(server.Server)) {
	var all sync.WaitGroup
	for _, h := range holders {
		all.Go(func() { do(h) })
	}
	all.Wait()
}

// Kept is a snapshot that was taken.
type Kept struct {
	Name    snapshot.Name
	Bytes   int64
	Servers []string // that keep it, by their names
}

// Take takes a snapshot now. SERVER_BUSY: another process takes one. AGENT_ERROR: no server keeps it.
func (s *Snapshots) Take(ctx context.Context) (k Kept, err error) {
	mine, err := s.base.Snapshots.Turn(ctx, func(ctx context.Context) error {
		holders, err := s.base.Holders(ctx)
		if err == nil {
			k, err = s.take(ctx, s.base.Clock.Now(), holders)
		}
		return err
	})
	if err == nil && !mine {
		err = fault.New(fault.ServerBusy, "another process takes a snapshot at this moment; try again")
	}
	return k, err
}

// take takes a snapshot and sends it to the servers. One that keeps it is enough, but those that do not are told.
func (s *Snapshots) take(ctx context.Context, now time.Time, holders []server.Server) (k Kept, err error) {
	of, err := s.base.Snapshots.Installation(ctx)
	if err != nil {
		return k, err
	}
	mark, err := s.base.Snapshots.Changes(ctx)
	if err != nil {
		return k, err
	}
	began := s.base.Clock.Now()
	k.Name = snapshot.NameAt(now)
	taken, err := s.base.Snapshots.Take(ctx, k.Name)
	if err != nil {
		return k, err
	}
	defer taken.Close()
	k.Bytes = taken.Size()
	var mu sync.Mutex
	var failed []error
	s.each(holders, func(h server.Server) {
		err := s.send(ctx, h, command.KeepSnapshot{InstallationID: of, Name: k.Name}, taken)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			k.Servers = append(k.Servers, h.Name)
			return
		}
		failed = append(failed, err)
		s.base.Journal.Log(ctx, ports.JournalEvent{What: "snapshot.not_kept", ServerID: h.ID, ServerName: h.Name, Err: err})
	})
	slices.Sort(k.Servers)
	if len(k.Servers) == 0 {
		return k, fault.Wrap(errors.Join(failed...), fault.AgentError, "no server keeps the snapshot of the metadata")
	}
	took := s.base.Clock.Now().Sub(began)
	s.mu.Lock()
	s.last, s.looked, s.mark = snapshot.Last{At: k.Name.At(), Took: took}, true, mark
	s.mu.Unlock()
	s.base.Journal.Log(ctx, ports.JournalEvent{What: "snapshot.kept", Took: took, Routine: true})
	return k, nil
}

func (s *Snapshots) send(ctx context.Context, h server.Server, q command.KeepSnapshot, taken ports.Snapshot) error {
	agent, err := s.base.Fleet.Agent(h)
	if err != nil {
		return err
	}
	_, err = ports.Send(ctx, agent, q, taken.Size(), io.NewSectionReader(taken, 0, taken.Size()))
	return err
}

// check reads the newest snapshot of one of the servers back, whole: another one each time.
func (s *Snapshots) check(ctx context.Context, now time.Time, holders []server.Server) error {
	h := holders[int(now.Unix()/int64(snapshot.CheckEvery/time.Second))%len(holders)]
	err := s.readBack(ctx, h)
	if err != nil {
		s.base.Journal.Log(ctx, ports.JournalEvent{What: "snapshot.unreadable", ServerID: h.ID, ServerName: h.Name, Err: err})
		return err
	}
	s.mu.Lock()
	s.checkedAt = now
	s.mu.Unlock()
	s.base.Journal.Log(ctx, ports.JournalEvent{What: "snapshot.read_back", ServerID: h.ID, ServerName: h.Name, Routine: true})
	return nil
}

func (s *Snapshots) readBack(ctx context.Context, h server.Server) error {
	of, err := s.base.Snapshots.Installation(ctx)
	if err != nil {
		return err
	}
	name, err := s.newestOn(ctx, h, of)
	if err != nil {
		return err
	}
	agent, err := s.base.Fleet.Agent(h)
	if err != nil {
		return err
	}
	file, err := agent.Open(ctx, command.OpenSnapshot{InstallationID: of, Name: name})
	if err != nil {
		return err
	}
	defer file.Body.Close()
	return s.base.Snapshots.Check(ctx, name, file.Body)
}
