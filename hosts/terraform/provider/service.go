package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// service is the API, what the state has of it, and whose turn it is at each database.
type service struct {
	*apiclient.Client

	held  *held
	mu    sync.Mutex
	turns map[id.DatabaseID]chan struct{}
}

// turn has room for the one who works on a database.
func (s *service) turn(of id.DatabaseID) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[of] == nil {
		s.turns[of] = make(chan struct{}, 1)
	}
	return s.turns[of]
}

// alone changes something of a database; empty: of none. Terraform asks for ten changes at a time, and the service makes one of a
// database after the other: here they take turns. Where something else is under way, such as a backup, it waits for that.
func (s *service) alone(ctx context.Context, of id.DatabaseID, do func() error) error {
	if of == "" {
		return do()
	}
	turn := s.turn(of)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return fmt.Errorf("other changes of the database are not made yet: %w", ctx.Err())
	}
	for calm := false; ; {
		refusal := do()
		if !slices.Contains(conflicts, codeOf(refusal)) {
			return refusal
		}
		busy, err := s.busy(ctx, of)
		if err != nil || calm && !busy { // twice: what was in the way may have ended between the refusal and the look
			return refusal
		}
		if calm = !busy; wait(ctx) != nil {
			return refusal
		}
	}
}

// conflicts are the codes by which the API refuses, among other things, what has to wait for something else.
var conflicts = []fault.Code{
	fault.DatabaseStateConflict, fault.ManagedRoleConflict, fault.QueryTimeoutConflict, fault.ExtensionMutationUnavailable,
}

// busy reports whether a database has an open operation. The latest ones are looked at.
func (s *service) busy(ctx context.Context, of id.DatabaseID) (bool, error) {
	latest, err := s.Operations.List(of).Page(ctx, apiclient.Page{Limit: 10})
	for _, o := range latest.Data {
		if !o.Status.Final() {
			return true, nil
		}
	}
	return false, err
}

// codeOf is the API's code of a refusal; empty for every other error.
func codeOf(err error) fault.Code {
	var refused *apiclient.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// pause is between two looks at what is under way.
const pause = 2 * time.Second

// wait is a pause, which the end of ctx cuts off.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// answered waits for the answer to a request that makes something, also where Terraform is interrupted: without it, the state
// would not have what was made. The deadline of ctx ends that.
func answered[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	end, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return ask(ctx)
}
