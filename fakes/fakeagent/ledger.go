package fakeagent

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// ledger remembers what an agent was told. A command is admitted in the order: fence, closed, conflict, done, stale. Only one
// about a login is done, and not stale, where a newer one was admitted.
type ledger struct {
	operations  map[id.OperationID]*operationState
	commands    map[commandKey]*commandState
	generations map[generationKey]*ports.AgentGenerations
	nameless    bool  // refusals name no generations
	failing     error // of the call that is being answered, once it is admitted
}

type operationState struct {
	epoch  int64
	closed bool
}

type commandKey struct {
	operation  id.OperationID // empty for a command of no operation
	kind       string
	step       string // where an operation has several commands of the kind
	resource   string
	generation int64
}

type generationKey struct{ kind, resource string }

type commandState struct {
	hash   [32]byte
	done   bool
	result any // of a command that is done, where it has one
}

func newLedger() ledger {
	return ledger{
		operations: map[id.OperationID]*operationState{}, commands: map[commandKey]*commandState{},
		generations: map[generationKey]*ports.AgentGenerations{},
	}
}

// hear refuses a worker that slept past its lease, and every command but a closing one of a closed operation.
func (l *ledger) hear(f ports.Fence, closing bool) error {
	if f.OperationID == "" {
		return nil
	}
	o, known := l.operations[f.OperationID]
	if !known {
		o = &operationState{}
		l.operations[f.OperationID] = o
	}
	if f.Epoch < o.epoch {
		return refuse(ports.ReasonFenced, "a worker with a newer lease has taken over this operation")
	}
	o.epoch = f.Epoch
	if o.closed && !closing {
		return refuse(ports.ReasonClosed, "the operation is closed")
	}
	return nil
}

// admit returns the command's entry; one that is done already is not to be done again.
func (l *ledger) admit(f ports.Fence, key commandKey, payload any) (*commandState, error) {
	if err := l.hear(f, false); err != nil {
		return nil, err
	}
	key.operation = f.OperationID
	hash := hashOf(payload)
	known, found := l.commands[key]
	g := l.generationsOf(key)
	switch stale := key.generation < g.Admitted; {
	case found && known.hash != hash:
		return nil, refuse(ports.ReasonConflict, "the same command came before with another payload")
	case found && known.done && (key.kind == loginKind || !stale):
		return known, nil
	case stale:
		return nil, refuse(ports.ReasonStale, "a newer generation was admitted")
	}
	g.Admitted = key.generation
	if !found {
		known = &commandState{hash: hash}
		l.commands[key] = known
	}
	return known, l.failing
}

// loginKind is the kind of the commands about logins.
const loginKind = "login"

func (l *ledger) generationsOf(key commandKey) *ports.AgentGenerations {
	of := generationKey{key.kind, key.resource}
	if l.generations[of] == nil {
		l.generations[of] = &ports.AgentGenerations{}
	}
	return l.generations[of]
}

// conclude records that an admitted command was done.
func (l *ledger) conclude(key commandKey, c *commandState, result any) {
	c.done, c.result = true, result
	g := l.generationsOf(key)
	g.Applied = max(g.Applied, key.generation)
}

// withGenerations adds to a refusal that is about generations what they are; of is nil where they are not a login's.
func (l *ledger) withGenerations(err error, key commandKey, of *login) error {
	var no *ports.AgentRefusal
	if l.nameless || !errors.As(err, &no) || no.Reason != ports.ReasonStale && no.Reason != ports.ReasonConflict {
		return err
	}
	g := *l.generationsOf(key)
	if of != nil {
		g.Credential = of.credential
	}
	return &ports.AgentRefusal{Reason: no.Reason, Message: no.Message, Generations: &g}
}

// hashOf never sees a password: callers clear them.
func hashOf(payload any) [32]byte {
	text, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("fakeagent: a payload of type %T does not encode", payload))
	}
	return sha256.Sum256(text)
}

func refuse(reason ports.AgentReason, format string, args ...any) error {
	return &ports.AgentRefusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func compareLogins(a, b ports.LoginSpec) int {
	return cmp.Or(cmp.Compare(a.Login, b.Login), cmp.Compare(a.Username, b.Username))
}
