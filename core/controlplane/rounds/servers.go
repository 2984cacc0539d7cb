package rounds

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// ServerTask is periodic work that asks servers. What is found for one account on one server is done in its order, and for
// several accounts and servers side by side. A later round does not wait for what an earlier one has not finished.
type ServerTask[W any] struct {
	Name  string
	Every time.Duration
	// Work says what the brake holds it for, as that of a Task. It is asked before each piece of work, too; what destroys
	// then waits until the server itself has said that the metadata lack nothing.
	Work brake.Work
	// Find lists what is to be done. It may have written that it is to be done, and nothing else.
	Find func(ctx context.Context, now time.Time) ([]W, error)
	// Of is the server that a piece of work asks, and the account that it is for.
	Of func(W) (id.ServerID, id.AccountID)
	// Key names a piece of work from round to round; nil where there is one of each account on a server at most.
	Key func(W) string
	// Limit bounds one piece of work; by default DefaultLimit.
	Limit time.Duration
	// Do does one piece of work, and logs its error. After one that is no answer of the server, see NoAnswer, the account's
	// other pieces wait for the next round, so that a dead server costs a round one attempt and not one for every piece. There
	// they come first: what fails again and again, or takes its whole time, delays the others once.
	Do func(ctx context.Context, now time.Time, w W) error
}

const (
	// perServer is how many accounts a task works for on one server at the same time.
	perServer = 4
	// reachTime is how long a server may take for a sign of life before a task asks anything of it.
	reachTime = 5 * time.Second
)

// RegisterServers adds a task that asks servers. It is called before the runner runs.
func RegisterServers[W any](r *Runner, t ServerTask[W]) {
	if t.Limit == 0 {
		t.Limit = DefaultLimit
	}
	p := lanes[W]{
		ServerTask: t, runner: r, busy: map[lane]bool{}, unanswered: map[lane][]string{},
		slots: slot.NewQueue(slot.Limits{PerAccount: math.MaxInt, Share: math.MaxInt, PerServer: perServer}),
	}
	r.tasks = append(r.tasks, task{name: t.Name, every: t.Every, work: t.Work, round: p.round})
}

// lane is the work of one account on one server, which is done in its order.
type lane struct {
	server  id.ServerID
	account id.AccountID
}

// lanes are a task with those of its lanes that are under way.
type lanes[W any] struct {
	ServerTask[W]
	runner *Runner

	mu         sync.Mutex
	busy       map[lane]bool
	unanswered map[lane][]string // keys of the pieces that had no answer when they were last tried, in that order
	slots      *slot.Queue
}

func (p *lanes[W]) round(ctx context.Context, now time.Time, start func(work func())) error {
	finding, cancel := context.WithTimeout(ctx, DefaultLimit)
	defer cancel()
	found, err := p.Find(finding, now)
	order, work, alive := []lane{}, map[lane][]W{}, map[id.ServerID]func() bool{}
	for _, w := range found {
		var of lane
		of.server, of.account = p.Of(w)
		if work[of] == nil {
			order = append(order, of)
		}
		work[of] = append(work[of], w)
		if alive[of.server] == nil {
			alive[of.server] = sync.OnceValue(func() bool { return p.answers(ctx, of.server) })
		}
	}
	p.forget(work)
	for _, of := range order {
		if p.begin(of) {
			start(func() {
				defer p.end(of)
				p.runLane(ctx, of, alive[of.server], work[of])
			})
		}
	}
	return err
}

// begin begins a lane; false while it is under way from an earlier round.
func (p *lanes[W]) begin(of lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	underWay := p.busy[of]
	p.busy[of] = true
	return !underWay
}

func (p *lanes[W]) end(of lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, of)
}

// runLane does the work of a lane, one piece after another, once there is a slot.
func (p *lanes[W]) runLane(ctx context.Context, of lane, alive func() bool, work []W) {
	slot := p.slots.Ask(of.account, of.server)
	defer slot.Leave()
	if slot.Wait(ctx) != nil || !alive() {
		return
	}
	for _, w := range p.unansweredLast(of, work) {
		err := p.do(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if NoAnswer(err) || isOtherProtocol(err) {
			p.runner.Heard(of.server, false)
		}
		p.remember(of, w, NoAnswer(err))
		if NoAnswer(err) {
			return
		}
	}
}

// unansweredLast puts the pieces that had no answer when they were last tried behind the others, the latest one last. It forgets
// those that are no longer found.
func (p *lanes[W]) unansweredLast(of lane, work []W) []W {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.unanswered[of]
	if len(before) == 0 {
		return work
	}
	place := func(w W) int { return slices.Index(before, p.Key(w)) } // -1 for the others
	slices.SortStableFunc(work, func(a, b W) int { return cmp.Compare(place(a), place(b)) })
	p.unanswered[of] = slices.DeleteFunc(slices.Clone(before), func(key string) bool {
		return !slices.ContainsFunc(work, func(w W) bool { return p.Key(w) == key })
	})
	return work
}

// forget forgets the lanes for which nothing is found any more.
func (p *lanes[W]) forget(work map[lane][]W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.unanswered, func(of lane, _ []string) bool { return work[of] == nil && !p.busy[of] })
}

// remember remembers whether a piece had no answer.
func (p *lanes[W]) remember(of lane, w W, unanswered bool) {
	if p.Key == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.Key(w)
	keys := slices.DeleteFunc(p.unanswered[of], func(known string) bool { return known == key })
	if unanswered {
		keys = append(keys, key)
	}
	p.unanswered[of] = keys
}

// answers checks for an outage, once in a round, before anything is written for the server. Every answer is a sign of life;
// but one that says that the agent has another protocol is of no use. Harmless work makes do with one that was given lately.
func (p *lanes[W]) answers(ctx context.Context, server id.ServerID) bool {
	if p.Work == brake.Harmless && p.runner.heardLately(server) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err := p.runner.reach(ctx, server)
	var refusal *command.Refusal
	p.runner.Heard(server, err == nil)
	if err == nil || errors.As(err, &refusal) && !isOtherProtocol(err) {
		return true
	}
	p.runner.journal.Log(ctx, ports.JournalEvent{What: "round.no_answer", Kind: p.Name, ServerID: server, Err: err})
	return false
}

func (p *lanes[W]) do(ctx context.Context, w W) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	on, _ := p.Of(w)
	now, err := p.runner.mayNow(ctx, p.Work, on)
	if err != nil {
		return err
	}
	return p.Do(ctx, now, w)
}

func isOtherProtocol(err error) bool { return command.RefusedFor(err, command.ReasonOtherProtocol) }

// NoAnswer reports whether an error is no definite answer of a server.
func NoAnswer(err error) bool {
	var refusal *command.Refusal
	return err != nil && (!errors.As(err, &refusal) || refusal.Reason == command.ReasonUnavailable)
}
