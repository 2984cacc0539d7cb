package command

import (
	"cmp"

	"github.com/pgherd/pgherd/core/id"
)

// Kind names what a command asks for.
type Kind string

// Command is declarative: it describes a desired state.
type Command interface {
	About() About
	// Check refuses, with ReasonInvalid, what cannot be carried out whatever the state of the server.
	Check() error
}

// About is what the ledger knows a command by, together with its operation and its payload: the same command again has the same
// reply. No operation may have two commands with the same step, resource and generation.
type About struct {
	Kind Kind
	Step string // empty: the kind
	// Resource is what the ledger orders generations by, together with the kind: "database/<id>".
	Resource string
	// Generation lower than the highest admitted is ReasonStale.
	Generation int64
}

// Returning is a command with its result.
type Returning[R any] interface {
	Command
	Reply() R
}

// Returns ties a result to the command or the question that embeds it.
type Returns[R any] struct{}

// Reply is the zero value.
func (Returns[R]) Reply() (zero R) { return zero }

// None is the result of what has none.
type None struct{}

// Envelope is what of a command travels beside its payload.
type Envelope struct {
	OperationID id.OperationID
	Generation  int64
	Secrets     map[string]string // passwords; they are never stored or logged
}

// A command with passwords hands them out apart from its payload.
type secretive interface{ Secrets() map[string]string }

// Step is the step of a command.
func Step(c Command) string { a := c.About(); return cmp.Or(a.Step, string(a.Kind)) }

// Steps lists the steps of the commands of c's type.
func Steps(c Command) []string {
	if s, ok := c.(interface{ Steps() []string }); ok {
		return s.Steps()
	}
	return []string{Step(c)}
}

// Secrets are the passwords of a command by name, without empty ones.
func Secrets(c Command) map[string]string {
	if s, ok := c.(secretive); ok {
		return s.Secrets()
	}
	return nil
}

// Receive completes a decoded command, given by its address, with what came beside its payload.
func Receive(c any, e Envelope) {
	if r, ok := c.(interface{ receive(Envelope) }); ok {
		r.receive(e)
	}
}

func ofDatabase(kind Kind, db id.DatabaseID, generation int64) About {
	return About{Kind: kind, Resource: "database/" + string(db), Generation: generation}
}
