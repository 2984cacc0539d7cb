package work

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is a kind of operations, as a capability registers it. In is the type of its input; None for a kind without one.
type Kind[In any] struct {
	operation.Spec
	// Step does one bounded piece of the work. An error means that the outcome is not known yet: the step is done again after a
	// pause that grows with each attempt, or after that of an Again beside the error.
	Step func(ctx context.Context, j *Job[In]) (Next, error)
	// GiveUp ends the operation on an operator's order, as a step does: by its way of failing or, where it has come too far for
	// that, by going on. Where the order says that the server is gone, it ends without a word of the server.
	GiveUp func(ctx context.Context, j *Job[In], by operation.Order) (Next, error)
	// Hold is how long the process of a caller may be silent before a worker takes over; 0 or longer than Config.LeaseHold: that.
	Hold time.Duration
	// Calls and Commits name the calls of agents and the commits of its steps. Before and after each of them is a crash point;
	// see Points.
	Calls, Commits []string
	// Withdraw takes back what was stored with an operation that is canceled before anybody has claimed it, in the transaction that
	// cancels it; nil: nothing was.
	Withdraw func(ctx context.Context, tx ports.Tx, o operation.Operation) error
}

// None is the input of a kind that has none.
type None struct{}

// Job is an operation under lease, with its input, for one step.
type Job[In any] struct {
	*Lease
	Input In
}

// Next says how an operation goes on after a step without an error. The zero value is no answer: use Done or Again.
type Next struct {
	done  bool
	after time.Duration
}

// Done means that the step has made the operation final; see Lease.Finish.
var Done = Next{done: true}

// Again asks for the next step after a time; 0 means at once, under the same lease.
func Again(after time.Duration) Next { return Next{after: after} }

// kind is a Kind without the type of its input.
type kind struct {
	operation.Spec
	step     func(ctx context.Context, l *Lease) (Next, error)
	giveUp   func(ctx context.Context, l *Lease, by operation.Order) (Next, error) // nil: none
	withdraw func(ctx context.Context, tx ports.Tx, o operation.Operation) error   // nil: nothing to take back
	points   []string
	hold     time.Duration
	begun    stage.Stage // see Staged; empty: it has no stages
}

// Register adds a kind. It is called before the engine runs, and panics if the kind is registered twice.
func Register[In any](e *Engine, k Kind[In]) { register(e, k, "") }

func register[In any](e *Engine, k Kind[In], begun stage.Stage) {
	if _, twice := e.kinds[k.Kind]; twice {
		panic("work: " + string(k.Kind) + " is registered twice")
	}
	known := kind{
		Spec: k.Spec, withdraw: k.Withdraw, hold: k.Hold, points: pointsOf(k.Kind, k.Calls, k.Commits), begun: begun,
		step: func(ctx context.Context, l *Lease) (Next, error) {
			switch held, err := e.held(ctx, k.Spec, l); {
			case err != nil:
				return Next{}, err
			case held:
				return Again(heldPause), nil
			}
			j, err := jobOf[In](l)
			if err != nil {
				return Next{}, err
			}
			return k.Step(ctx, j)
		},
	}
	if k.GiveUp != nil {
		known.giveUp = func(ctx context.Context, l *Lease, by operation.Order) (Next, error) {
			j, err := jobOf[In](l)
			if err != nil {
				return Next{}, err
			}
			return k.GiveUp(ctx, j, by)
		}
	}
	e.kinds[k.Kind] = known
	e.names = append(e.names, k.Kind)
}

// heldPause is how long an operation is put down that has to wait.
const heldPause = 10 * time.Second

// errSuspended holds what deletes because a time is over.
var errSuspended = errors.New("the account is suspended")

// held reports whether the next step of an operation has to wait: the service has begun it by itself because a time is over, and
// that cannot be trusted now, or it deletes and the account is suspended. To cancel it does not have to wait, and neither does an
// operator's order. What customers have asked for before a suspension goes on: waiting, it would keep out the daily backup.
func (e *Engine) held(ctx context.Context, s operation.Spec, l *Lease) (bool, error) {
	o := l.Operation()
	if !s.ByTime(o) || o.CancelRequested {
		return false, nil
	}
	if !s.Logins {
		of, err := ports.Read(ctx, e.Store, func(ctx context.Context, tx ports.Tx) (account.Account, error) {
			return tx.Accounts().Get(ctx, o.AccountID)
		})
		if err == nil && of.Suspended() {
			l.Log("operation.held", errSuspended)
		}
		if err != nil || of.Suspended() {
			return err == nil, err
		}
	}
	_, err := e.Held(ctx, brake.Destroys, o.ServerID)
	var held brake.Held
	if errors.As(err, &held) {
		l.Log("operation.held", err)
		return true, nil
	}
	return false, err
}

func jobOf[In any](l *Lease) (*Job[In], error) {
	j := &Job[In]{Lease: l}
	if input := l.Operation().Input; len(input) > 0 {
		if err := json.Unmarshal(input, &j.Input); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Kinds are the specs of all registered kinds, in the order of their registration.
func (e *Engine) Kinds() []operation.Spec {
	list := make([]operation.Spec, 0, len(e.names))
	for _, name := range e.names {
		list = append(list, e.kinds[name].Spec)
	}
	return list
}

// holdOf is how long a caller's process may be silent that works on an operation of a kind.
func (e *Engine) holdOf(k operation.Kind) time.Duration {
	if hold := e.kinds[k].hold; hold > 0 {
		return min(hold, e.LeaseHold)
	}
	return e.LeaseHold
}

// Spec is that of a kind. One that this program does not know permits nothing.
func (e *Engine) Spec(k operation.Kind) operation.Spec {
	if known, ok := e.kinds[k]; ok {
		return known.Spec
	}
	return operation.Spec{Kind: k}
}

// Names are those of all kinds, in the order of registration.
func (e *Engine) Names() []operation.Kind {
	return e.having(func(operation.Spec) bool { return true })
}

// Public are the kinds that the API shows.
func (e *Engine) Public() []operation.Kind {
	return e.having(func(s operation.Spec) bool { return s.Public })
}

// BesideLogins are the kinds beside which logins may change.
func (e *Engine) BesideLogins() operation.Beside {
	return operation.Beside{
		Always:     e.having(func(s operation.Spec) bool { return s.BesideLogins }),
		UntilBegun: e.having(func(s operation.Spec) bool { return s.LoginsUntilBegun }),
	}
}

func (e *Engine) having(is func(operation.Spec) bool) (list []operation.Kind) {
	for _, s := range e.Kinds() {
		if is(s) {
			list = append(list, s.Kind)
		}
	}
	return list
}
