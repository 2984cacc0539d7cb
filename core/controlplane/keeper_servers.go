package controlplane

import (
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const (
	// keepMost bounds how much work for all servers together a round looks at. It is far more than a dead server usually has
	// waiting, so that the others' work is seen too.
	keepMost = 100 * keepBatch
	// keepTime bounds what an agent may take for one allowlist or file.
	keepTime = time.Minute
)

func byServer[T any](work []T, of func(T) id.ServerID) map[id.ServerID][]T {
	groups := map[id.ServerID][]T{}
	for _, w := range work {
		groups[of(w)] = append(groups[of(w)], w)
	}
	return groups
}

// noAnswer reports whether an error is no definite answer of an agent. What else its server has to do then waits for the next
// round, so that a dead server costs a round one attempt and not one for every piece of work.
func noAnswer(err error) bool {
	var refusal *ports.AgentRefusal
	return err != nil && !isSettled(err) && (!errors.As(err, &refusal) || refusal.Reason == ports.ReasonUnavailable)
}
