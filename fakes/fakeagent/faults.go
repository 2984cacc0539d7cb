package fakeagent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/ports"
)

// ErrReplyLost is the unknown outcome: the agent may have done it.
var ErrReplyLost = errors.New("the connection to the agent broke off")

// Call is one call of ports.Agent.
type Call struct {
	Method    string // type of the command or question: "EnsureDatabase", "DatabaseSize" ...
	Fence     ports.Fence
	Step      string          // of a command
	Database  id.DatabaseID   // empty for what is about none
	Filename  backup.Filename // of what is about a backup's file
	Username  string          // of what is about a login
	CallIndex int             // how many calls of this method the server has had before
}

// Fault says how a call goes wrong; the zero value lets it pass.
type Fault struct {
	Before   error // returned in place of doing anything
	Admitted error // returned once the command was admitted, in place of carrying it out
	After    error // returned after everything was done: a lost reply
	// Then happens once everything was done, before the reply comes; nil: nothing. It runs without any lock of the server.
	Then func()
}

// Hook decides over every call. It may block, as long as ctx lasts. It runs without any lock of the server.
type Hook func(ctx context.Context, c Call) Fault

type faults struct {
	hook        Hook
	calls       map[string]int
	unreachable bool
	apart       bool // no peer is reached
	unavailable bool
	ahead       int // how many protocols the agent is ahead of command.Protocol
	storageFull bool
	notVerified string
	leaves      func() bool
	loseReplies int
	delay       time.Duration

	queueExtensions, holdExtensions bool
	failExtensions                  string

	failLoads string
	breaks    []rehearsal.Break
	leftOut   []string

	holdDumps, holdFollows, notLogical bool
	failFollows, failTakes             string
	busy                               int

	countsNothing bool
	storage       string
	lists         func(*command.InventoryDatabase)
	listsStrays   func(*command.Strays)
	listsFiles    func([]command.StoredFile) []command.StoredFile
	holdReadings  bool
	holdDrills    bool
	drillFails    string
}

// OnCall sets the hook; nil removes it.
func (s *Server) OnCall(h Hook) { s.set(func(f *faults) { f.hook = h }) }

// SetUnreachable makes every call ErrAgentUnreachable.
func (s *Server) SetUnreachable(on bool) { s.set(func(f *faults) { f.unreachable = on }) }

// SetUnavailable makes the agent refuse every call that needs PostgreSQL or PgBouncer with ReasonUnavailable.
func (s *Server) SetUnavailable(on bool) { s.set(func(f *faults) { f.unavailable = on }) }

// SetProtocol makes the agent one of a later protocol, or of an earlier one where ahead is negative: it refuses everything but
// the question what it is.
func (s *Server) SetProtocol(ahead int) { s.set(func(f *faults) { f.ahead = ahead }) }

// SetStorageFull leaves no room for backups: RoomForBackup refuses, and a backup fails before its file is written.
func (s *Server) SetStorageFull(on bool) { s.set(func(f *faults) { f.storageFull = on }) }

// SetNotVerified makes every verification from now on end with this message; empty makes it succeed again.
func (s *Server) SetNotVerified(message string) { s.set(func(f *faults) { f.notVerified = message }) }

// LeaveOverlays has an opt-in leave something wherever that is so: its groups stand then, and lack rights. It runs under the
// server's lock; nil ends it.
func (s *Server) LeaveOverlays(leaves func() bool) { s.set(func(f *faults) { f.leaves = leaves }) }

// LoseReplies has the next n calls end in ErrReplyLost after they were done.
func (s *Server) LoseReplies(n int) { s.set(func(f *faults) { f.loseReplies = n }) }

// SetDelay makes every call take this long. A call whose context ends before ends in ErrReplyLost, with nothing done.
func (s *Server) SetDelay(d time.Duration) { s.set(func(f *faults) { f.delay = d }) }

// SetOpen opens or closes the gates of a database, as a command does that then gets no further.
func (s *Server) SetOpen(db id.DatabaseID, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil {
		d.open = open
	}
}

// HoldDrills has the drills that begin from now on go on until it is told otherwise.
func (s *Server) HoldDrills(on bool) { s.set(func(f *faults) { f.holdDrills = on }) }

// FailDrills has drills find what was had back to be wrong, for a reason; empty: no longer.
func (s *Server) FailDrills(why string) { s.set(func(f *faults) { f.drillFails = why }) }

// HoldReadings has the readings of backups that begin from now on go on until it is told otherwise.
func (s *Server) HoldReadings(on bool) { s.set(func(f *faults) { f.holdReadings = on }) }

// Lists changes how databases are listed from now on, as where an administrator has changed them; nil: as they are.
func (s *Server) Lists(change func(*command.InventoryDatabase)) {
	s.set(func(f *faults) { f.lists = change })
}

// ListsStrays changes what is listed beside databases, and ListsFiles the list of files.
func (s *Server) ListsStrays(change func(*command.Strays)) {
	s.set(func(f *faults) { f.listsStrays = change })
}

// ListsFiles is as ListsStrays says.
func (s *Server) ListsFiles(change func([]command.StoredFile) []command.StoredFile) {
	s.set(func(f *faults) { f.listsFiles = change })
}

// SetRights makes these what stands inside a database, whatever the service gives.
func (s *Server) SetRights(db id.DatabaseID, inside command.Rights) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil {
		d.inside = &inside
	}
}

// Calls returns how many calls of a method have come.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.calls[method]
}

func (s *Server) set(change func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// begin counts a call and takes what is set to go wrong with it.
func (s *Server) begin(c *Call) (hook Hook, delay time.Duration, lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.faults
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	c.CallIndex = f.calls[c.Method]
	f.calls[c.Method]++
	if f.loseReplies > 0 && !f.unreachable {
		f.loseReplies--
		lose = true
	}
	return f.hook, f.delay, lose
}

// answer carries out a call, with what is set to go wrong. do runs under the server's lock.
func (s *Server) answer(ctx context.Context, c Call, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	hook, delay, lose := s.begin(&c)
	if err := pause(ctx, delay); err != nil {
		return fmt.Errorf("%w: %w", ErrReplyLost, err)
	}
	var fault Fault
	if hook != nil {
		fault = hook(ctx, c)
	}
	if fault.Before != nil {
		return fault.Before
	}
	err := s.guarded(c, func() error {
		s.ledger.failing = fault.Admitted
		return do()
	})
	if fault.Then != nil {
		fault.Then()
	}
	switch {
	case errors.Is(err, ports.ErrAgentUnreachable):
		return err
	case fault.After != nil:
		return fault.After
	case lose:
		return ErrReplyLost
	}
	return err
}

func (s *Server) guarded(c Call, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := command.CheckProtocol(command.Protocol - s.faults.ahead)
	switch {
	case s.faults.unreachable:
		return ports.ErrAgentUnreachable
	case other != nil && c.Method != reflect.TypeFor[command.AskCapabilities]().Name():
		return other
	case s.faults.unavailable:
		return command.Refuse(command.ReasonUnavailable, "PostgreSQL is down")
	}
	return do()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
