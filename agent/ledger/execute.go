package ledger

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// handler decodes and checks a command before it is entered into the ledger, and returns the function that carries it out.
type handler func(e protocol.Command) (action, error)

// action carries one command out.
type action func(ctx context.Context) (json.RawMessage, error)

// kindStep finds a handler. The step is empty for the one of a kind that has every other step.
type kindStep struct {
	kind command.Kind
	step string
}

// Trait is how the commands of a kind differ from others.
type Trait int

const (
	// OfNoOperation says that they are ordered by their generations alone.
	OfNoOperation Trait = iota + 1
	// AdmittedLate says that their admission does not wait for the disk; see FlushLater.
	AdmittedLate
)

// On has the commands of a type carried out by do, which stores the outcome itself, in the transaction of its last change. What
// do gets beside the command is what the ledger knows it by.
func On[C command.Returning[R], R any](
	l *Ledger, do func(ctx context.Context, e protocol.Command, c C) (R, error), traits ...Trait,
) {
	handle := func(e protocol.Command) (action, error) {
		c, err := decode[C](e)
		e.Payload, e.Secrets = nil, nil
		return func(ctx context.Context) (json.RawMessage, error) {
			result, err := do(ctx, e, c)
			if err != nil {
				return nil, err
			}
			return json.Marshal(result)
		}, err
	}
	var zero C
	l.traits[zero.About().Kind] = traits
	for _, step := range command.Steps(zero) {
		if step == string(zero.About().Kind) {
			step = ""
		}
		l.kinds[kindStep{zero.About().Kind, step}] = handle
	}
}

// decode reads a command. Unknown and duplicate names, names in another letter case and trailing data are refused.
func decode[C command.Command](e protocol.Command) (c C, err error) {
	if err := strict.Unmarshal(e.Payload, &c, strict.RejectUnknownMembers(true)); err != nil {
		return c, command.Refuse(command.ReasonInvalid, "the payload cannot be read")
	}
	command.Receive(&c, command.Envelope{
		OperationID: id.OperationID(e.OperationID), Generation: e.Generation, Secrets: e.Secrets,
	})
	if e.Resource != c.About().Resource {
		return c, command.Refuse(command.ReasonInvalid, "the resource is not what the payload is about")
	}
	return c, c.Check()
}

// commandTime bounds one command. Its sender may have given up long before; the outcome stays in the ledger.
const commandTime = 2 * time.Minute

// The guard ends who holds all locks. A command waits for that for so long, with a pause between its attempts.
const (
	memoryTime  = 10 * time.Second
	memoryPause = 100 * time.Millisecond
)

// Execute carries out a command and returns its result. AsRefusal turns every error into a definite refusal; after one with the
// reason "unavailable", a repeated command continues where this one stopped.
func (l *Ledger) Execute(ctx context.Context, e protocol.Command) (json.RawMessage, error) {
	do, err := l.read(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	for began := time.Now(); ; {
		result, err := l.execute(ctx, e, do)
		if pg.State(err) != pg.OutOfMemory || time.Since(began) > memoryTime || loop.Wait(ctx, memoryPause) != nil {
			return result, err
		}
	}
}

func (l *Ledger) execute(ctx context.Context, e protocol.Command, do action) (json.RawMessage, error) {
	release, err := l.lockFor(ctx, e)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := l.admit(ctx, e)
	switch {
	case err != nil:
		return nil, l.withGenerations(ctx, e, err)
	case !v.goOn:
		return v.result, nil
	}
	result, err := do(ctx)
	if err != nil {
		return nil, l.withGenerations(ctx, e, l.abandon(ctx, e, err))
	}
	return result, nil
}

func (l *Ledger) has(k command.Kind, t Trait) bool { return slices.Contains(l.traits[k], t) }

// read checks a command before it is entered into the ledger, and finds the function that carries it out.
func (l *Ledger) read(e protocol.Command) (action, error) {
	handle := l.kinds[kindStep{e.Kind, e.Step}]
	if handle == nil {
		handle = l.kinds[kindStep{e.Kind, ""}]
	}
	if handle == nil {
		return nil, command.Refuse(command.ReasonInvalid, "there is no command %s, step %s", e.Kind, e.Step)
	}
	_, opErr := id.Parse[id.OperationID](e.OperationID)
	switch {
	case e.OperationID != "" && opErr != nil:
		return nil, command.Refuse(command.ReasonInvalid, "operationId must be a UUID")
	case e.OperationID == "" && !l.has(e.Kind, OfNoOperation):
		return nil, command.Refuse(command.ReasonInvalid, "%s belongs to an operation", e.Kind)
	case e.Step == "" || e.Resource == "" || e.Epoch < 0 || e.Generation < 0:
		return nil, command.Refuse(command.ReasonInvalid, "step, resource, epoch or generation cannot be")
	case e.PayloadHash != protocol.Hash(e.Payload):
		return nil, command.Refuse(command.ReasonInvalid, "payloadHash is not that of the payload")
	}
	return handle(e)
}

// lockFor locks the operation first and then the database, so that two commands cannot deadlock. A login is locked with its
// database: stopping a database and changing a login exclude each other.
func (l *Ledger) lockFor(ctx context.Context, c protocol.Command) (func(), error) {
	if c.OperationID == "" {
		return l.Locks.Take(ctx, c.Resource)
	}
	first, err := l.Locks.Take(ctx, command.OperationResource(id.OperationID(c.OperationID)))
	if err != nil || c.Kind == (command.Close{}).About().Kind {
		return first, err // the resource is the operation itself
	}
	database, _, _ := strings.Cut(c.Resource, "/login/")
	second, err := l.Locks.Take(ctx, database)
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}

// DatabaseResource is what commands about a database are about.
func DatabaseResource(id string) string { return "database/" + id }
