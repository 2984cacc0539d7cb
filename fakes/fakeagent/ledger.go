package fakeagent

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// ledger remembers what an agent was told. A command is admitted in the order: fence, closed, conflict, done, stale. Only one
// about a login is done, and not stale, where a newer one was admitted.
type ledger struct {
	operations  map[id.OperationID]*operationState
	commands    map[commandKey]*commandState
	generations map[generationKey]*command.Generations
	vouches     int
	now         func() time.Time
	failing     error // of the call that is being answered, once it is admitted
}

type operationState struct {
	epoch    int64
	closed   bool
	spokenAt time.Time
	// unvouched says that nobody has vouched for it, and vouched in which turn somebody has, and when; 0: it need not be.
	unvouched bool
	vouched   int
	vouchedAt time.Time
}

type commandKey struct {
	operation      id.OperationID // empty for a command of no operation
	step, resource string
	generation     int64
}

type generationKey struct {
	kind     command.Kind
	resource string
}

type commandState struct {
	hash   [32]byte
	done   bool
	result any // of a command that is done
}

func newLedger(now func() time.Time) ledger {
	return ledger{
		now:        now,
		operations: map[id.OperationID]*operationState{}, commands: map[commandKey]*commandState{},
		generations: map[generationKey]*command.Generations{},
	}
}

// hear refuses a worker that slept past its lease, and every command but a closing one of a closed operation.
func (l *ledger) hear(f ports.Fence, closing bool) error {
	if f.OperationID == "" {
		return nil
	}
	o, known := l.operations[f.OperationID]
	if !known {
		o = &operationState{unvouched: f.Epoch > 0}
		l.operations[f.OperationID] = o
	}
	if f.Epoch < o.epoch {
		return command.Refuse(command.ReasonFenced, "a worker with a newer lease has taken over this operation")
	}
	o.epoch, o.spokenAt = f.Epoch, l.now()
	if o.closed && !closing {
		return command.Refuse(command.ReasonClosed, "the operation is closed")
	}
	return nil
}

// admit returns the command's entry; one that is done already is not to be done again.
func (l *ledger) admit(f ports.Fence, c command.Command) (*commandState, error) {
	if err := l.hear(f, false); err != nil {
		return nil, err
	}
	about := c.About()
	key := commandKey{f.OperationID, command.Step(c), about.Resource, about.Generation}
	hash := hashOf(c)
	known, found := l.commands[key]
	g := l.generationsOf(c)
	switch stale := about.Generation < g.Admitted; {
	case found && known.hash != hash:
		return nil, command.Refuse(command.ReasonConflict, "the same command came before with another payload")
	case found && known.done && (aboutLogin(c) || !stale):
		return known, nil
	case stale:
		return nil, command.Refuse(command.ReasonStale, "a newer generation was admitted")
	}
	g.Admitted = about.Generation
	if !found {
		known = &commandState{hash: hash}
		l.commands[key] = known
	}
	return known, l.failing
}

func aboutLogin(c command.Command) bool {
	return c.About().Kind == (command.ChangeLogin{}).About().Kind
}

func (l *ledger) generationsOf(c command.Command) *command.Generations {
	of := generationKey{c.About().Kind, c.About().Resource}
	if l.generations[of] == nil {
		l.generations[of] = &command.Generations{}
	}
	return l.generations[of]
}

// conclude records that an admitted command was done.
func (l *ledger) conclude(c command.Command, entry *commandState, result any) {
	entry.done, entry.result = true, result
	g := l.generationsOf(c)
	g.Applied = max(g.Applied, c.About().Generation)
}

// did tells whether a step about a login is done, of whatever generation.
func (l *ledger) did(q command.ReadOutcome) bool {
	for key, c := range l.commands {
		if key.operation == q.OperationID && key.step == q.Step && key.resource == q.Resource() && c.done {
			return true
		}
	}
	return false
}

// withGenerations adds to a refusal that is about generations what they are.
func (s *Server) withGenerations(err error, c command.Command) error {
	var no *command.Refusal
	if !errors.As(err, &no) || no.Reason != command.ReasonStale && no.Reason != command.ReasonConflict {
		return err
	}
	g := *s.ledger.generationsOf(c)
	call := callOf(c)
	if d := s.databases[call.Database]; d != nil && d.logins[call.Username] != nil {
		g.Credential = d.logins[call.Username].credential
	}
	return &command.Refusal{Reason: no.Reason, Message: no.Message, Generations: &g}
}

// hashOf never sees a password: they are not in the payload.
func hashOf(c command.Command) [32]byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("fakeagent: a command of type %T does not encode", c))
	}
	return sha256.Sum256(text)
}
