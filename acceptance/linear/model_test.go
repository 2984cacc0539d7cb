package linear

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/pgherd/pgherd/core/role"
)

// fact is one thing that a client learnt from a call: it was true, or took effect, at one moment between call and return. A call
// that does several things in turn yields several facts. The numbers are those of the history.
type fact struct {
	is         event
	key        int8
	body, name int8
	shown      shown
	kind       role.Kind
	change     int8
	password   int8
	yes        bool
	list       []shown
	note       string
}

// shown is a role as an answer shows it.
type shown struct {
	id, key, name, ordinal int8
	status                 role.Status
	generation             int8  // of the credential
	set                    int16 // generation of the role set; 0 where the answer does not say
}

// String leaves out what a fact does not tell.
func (f fact) String() string {
	parts := []string{string(f.is)}
	add := func(what string, v any, told bool) {
		if told {
			parts = append(parts, fmt.Sprint(what, " ", v))
		}
	}
	add("key", f.key, f.key != 0)
	add("body", f.body, f.body != 0)
	add("name", f.name, f.name != 0)
	add("kind", f.kind, f.kind != "")
	add("change", f.change, f.change != 0)
	add("password", f.password, f.password != 0)
	add("yes", f.yes, f.yes)
	add("role", f.shown, f.shown != shown{})
	add("roles", f.list, len(f.list) > 0)
	add("because", f.note, f.note != "")
	return strings.Join(parts, ", ")
}

// String leaves out what an answer did not tell.
func (a shown) String() string {
	if a.status == "" {
		return fmt.Sprintf("#%d credential %d", a.id, a.generation)
	}
	return fmt.Sprintf("#%d c%d %s key %d name %d credential %d set %d",
		a.id, a.ordinal, a.status, a.key, a.name, a.generation, a.set)
}

// event says what a fact is about.
type event string

const (
	createBegun   event = "create begun"
	createTried   event = "create perhaps begun"
	createRefused event = "create refused"
	created       event = "created"
	prepareBegun  event = "prepare begun"
	prepareNo     event = "prepare refused"
	admitBegun    event = "admit begun"
	admitNo       event = "admit refused"
	seen          event = "seen"
	renamed       event = "renamed"
	renameNo      event = "rename refused"
	revealed      event = "revealed"
	revealNo      event = "reveal refused"
	changeBegun   event = "change begun"
	changeNo      event = "change refused"
	changeSeen    event = "change seen"
	deleteBegun   event = "delete begun"
	deleteDone    event = "delete done"
	deletePending event = "delete pending"
	deleteNo      event = "delete refused"
	deleteKept    event = "delete kept by dependencies"
	removeBegun   event = "remove begun"
	removeDone    event = "remove done"
	removePending event = "remove pending"
	removeNo      event = "remove refused"
	removeKept    event = "remove kept by dependencies"
	depends       event = "depends"
	optInBegun    event = "opt-in begun"
	optInNo       event = "opt-in refused"
	optedIn       event = "opted in"
	prepareTried  event = "prepare perhaps begun"
	admitTried    event = "admit perhaps begun"
	grantMissing  event = "admit refused for want of CONNECT"
	reconciled    event = "reconciled"
	connects      event = "owner decides about CONNECT"
	held          event = "session is open"
	disturbed     event = "operation begun"
	restored      event = "restore begun"
	rested        event = "operation ended"
	gone          event = "gone"
	listed        event = "listed"
	listedAll     event = "listed with revoked ones"
	knocked       event = "logged in"
	unexpected    event = "unexpected"
)

var hashSeed = maphash.MakeSeed()

// model is the sequential specification, of which the background is the nondeterministic part.
func model(legacy bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{legacy: legacy}} },
		Step: func(from, input, _ any) (next []any) {
			f := input.(fact)
			for _, s := range reachable(from.(state)) {
				for _, after := range step(s, f) {
					next = append(next, after)
				}
			}
			return next
		},
		Hash: func(s any) uint64 { return maphash.Comparable(hashSeed, s.(state)) },
	}
	return m.ToModel()
}

// step returns the states in which a fact may leave the model; none where it cannot be true.
func step(s state, f fact) []state {
	if begun, is := perhaps[f.is]; is {
		return append(only(s, true), steps[begun](s, f)...)
	}
	rule, known := steps[f.is]
	if !known {
		rule, known = legacySteps[f.is]
	}
	if !known {
		return nil
	}
	return rule(s, f)
}

// perhaps are the events that may have been another one, or nothing.
var perhaps = map[event]event{createTried: createBegun, prepareTried: prepareBegun, admitTried: admitBegun}

func only(s state, when bool) []state {
	if when {
		return []state{s}
	}
	return nil
}
