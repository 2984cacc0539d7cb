package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// insistent tells an agent every command of a case again, as who has lost the reply does: at once after it was carried out, the
// first of each step many times at once, and at the end of the case all that is over by then. Nothing may come of that.
type insistent struct {
	ports.Agent
	server ServerView
	t      *testing.T

	mu   sync.Mutex
	told []told
}

// told is a command, as its agent was told it last.
type told struct {
	fence   ports.Fence
	command command.Command
	done    bool // it was carried out
	goesOn  bool // the work on it was under way
}

// crowd is how many tell a command at once.
const crowd = 32

// repeated are the ways in which commands were told again, in any suite of this process, by type and way.
var repeated sync.Map

type repetition struct{ command, way string }

// The ways in which every command is told again.
const (
	twice  = "twice"
	atOnce = "at once"
	late   = "late"
)

// NeverRepeated are those of these types of commands that no suite of this process has told again, with the way.
func NeverRepeated(commands []string) (list []string) {
	for _, name := range commands {
		for _, way := range []string{twice, atOnce, late} {
			if _, was := repeated.Load(repetition{name, way}); !was {
				list = append(list, name+" "+way)
			}
		}
	}
	return list
}

func was(c command.Command, way string) {
	repeated.Store(repetition{reflect.TypeOf(c).Name(), way}, true)
}

// insisting has everything that a case tells its agent told again.
func insisting(t *testing.T, s Stand, test func(t *testing.T, s Stand)) {
	t.Helper()
	a := &insistent{Agent: s.Agent, server: s.Server, t: t}
	s.Agent = a
	test(t, s)
	a.tellLate()
}

func insistingOnBoth(t *testing.T, p Pair, test func(t *testing.T, p Pair)) {
	t.Helper()
	insisting(t, p.Source, func(t *testing.T, source Stand) {
		p.Source = source
		insisting(t, p.Target, func(t *testing.T, target Stand) {
			p.Target = target
			test(t, p)
		})
	})
}

// Do implements ports.Agent.
func (a *insistent) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	_, before := repeated.Load(repetition{reflect.TypeOf(c).Name(), atOnce})
	alone := before || lasts(c)
	result, err := a.tell(ctx, f, c, alone)
	now := told{fence: f, command: c, done: err == nil && !underWay(result), goesOn: err == nil && underWay(result)}
	a.remember(now)
	_, follows := c.(command.Follow) // which is never done
	if !now.done && (!now.goesOn || !follows) {
		return result, err
	}
	again, told := a.Agent.Do(ctx, f, c)
	if told != nil || now.done && !alike(again, result) {
		a.t.Errorf("%T, told again: %s, %v; before: %s", c, again, told, result)
	}
	was(c, twice)
	if lasts(c) && !before {
		_, told := a.tell(ctx, f, c, false)
		noError(a.t, told)
	}
	return result, err
}

// tell tells a command, alone or many times at once. Where some are refused because so many came, the others count.
func (a *insistent) tell(ctx context.Context, f ports.Fence, c command.Command, alone bool) (json.RawMessage, error) {
	if alone {
		return a.Agent.Do(ctx, f, c)
	}
	var all sync.WaitGroup
	results, errs := make([]json.RawMessage, crowd), make([]error, crowd)
	for i := range crowd {
		all.Go(func() { results[i], errs[i] = a.Agent.Do(ctx, f, c) })
	}
	all.Wait()
	first := max(0, slices.Index(errs, nil))
	for i, err := range errs {
		differs := err == nil && !underWay(results[i]) && !alike(results[i], results[first])
		if errs[first] == nil && (differs || err != nil && !passing(err)) {
			a.t.Errorf("%T, told at once: %s, and %s, %v", c, results[first], results[i], err)
		}
	}
	if errs[first] == nil {
		was(c, atOnce)
	}
	return results[first], errs[first]
}

// passing reports whether a command was refused for now.
func passing(err error) bool {
	var no *command.Refusal
	return errors.As(err, &no) && slices.Contains([]command.Reason{
		command.ReasonCrowded, command.ReasonBusy, command.ReasonUnfinished, command.ReasonUnavailable,
	}, no.Reason)
}

func (a *insistent) remember(now told) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(t told) bool { return t.fence == now.fence && reflect.DeepEqual(t.command, now.command) }
	a.told = append(slices.DeleteFunc(a.told, same), now)
}

// tellLate tells once more what is over, and expects that the databases are as they were, and nothing new is there. What an
// operation has left may be dropped meanwhile.
func (a *insistent) tellLate() {
	a.t.Helper()
	databases, names := a.listed(), a.names()
	for i, c := range a.told {
		if !a.over(i) {
			continue
		}
		_, err := a.Agent.Do(bounded(a.t), c.fence, c.command)
		if no := (*command.Refusal)(nil); err != nil && !errors.As(err, &no) {
			a.t.Errorf("%T, late: %v", c.command, err)
		}
		was(c.command, late)
	}
	if after := a.listed(); after != databases {
		a.t.Errorf("late commands have changed a database; before:\n%s\nafter:\n%s", databases, after)
	}
	for _, name := range a.names() {
		if !slices.Contains(names, name) {
			a.t.Errorf("late commands have made %s", name)
		}
	}
}

// over reports whether a command can do nothing any more: it was done, its operation was closed, a newer generation was done, or
// its work went on until the operation's next command was done.
func (a *insistent) over(i int) bool {
	c := a.told[i]
	return c.done || slices.ContainsFunc(a.told[i+1:], func(later told) bool {
		of, about := later.command.About(), c.command.About()
		if !later.done {
			return false
		}
		if later.fence.OperationID == c.fence.OperationID && c.fence.OperationID != "" {
			return c.goesOn || of.Kind == command.Close{}.About().Kind
		}
		return of.Kind == about.Kind && of.Resource == about.Resource && of.Generation > about.Generation
	})
}

// listed is what the agent lists of the databases that it was told of.
func (a *insistent) listed() string {
	a.t.Helper()
	var of []id.DatabaseID
	for _, c := range a.told {
		if f := reflect.ValueOf(c.command).FieldByName("DatabaseID"); f.IsValid() {
			of = append(of, id.DatabaseID(f.String()))
		}
	}
	slices.Sort(of)
	var list []string
	for _, db := range slices.Compact(of) {
		text, err := json.Marshal(inventoryOf(a.t, Stand{Agent: a.Agent}, db))
		noError(a.t, err)
		list = append(list, string(text))
	}
	return strings.Join(list, "\n")
}

// names are those of all databases and logins of the server.
func (a *insistent) names() []string { return append(a.server.Databases(), a.server.Logins()...) }

// lasts reports whether the work on a command may go on after its reply.
func lasts(c command.Command) bool {
	reply, _ := reflect.TypeOf(c).MethodByName("Reply")
	_, has := reply.Type.Out(0).FieldByName("State")
	return has
}

// underWay reports whether a result says that the work goes on.
func underWay(result json.RawMessage) bool {
	var at struct{ State string }
	_ = json.Unmarshal(result, &at) // what has no state is done
	return slices.Contains([]string{"running", string(command.Following), string(command.FollowedNear)}, at.State)
}

func alike(a, b json.RawMessage) bool {
	var one, other any
	return bytes.Equal(a, b) || json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}
