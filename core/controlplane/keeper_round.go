package controlplane

import (
	"errors"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// keepMost bounds how far a round looks when nothing can be done for the first pieces of work.
const keepMost = 100 * keepBatch

// round does what is due, keepBatch pieces of work at a time. If all of them are stuck because their server does not answer, it
// looks further, so that a dead server with much work does not block the others.
func round[T any](due func(limit int) ([]T, error), do func(T) (done bool)) error {
	for limit := keepBatch; ; limit *= 10 {
		list, err := due(limit)
		if err != nil {
			return err
		}
		progress := false
		for _, v := range list {
			progress = do(v) || progress
		}
		if progress || len(list) < limit || limit >= keepMost {
			return nil
		}
	}
}

// errNoAnswer means that the server did not answer earlier in this round, and was not asked again.
var errNoAnswer = errors.New("the server has not answered in this round")

// outage remembers, for one round, which servers do not answer, so that each costs one attempt and not one for every piece
// of work.
type outage map[id.ServerID]bool

func (o outage) of(s id.ServerID) bool { return o[s] }

// note remembers a server whose agent gave no definite answer, and passes the error on.
func (o outage) note(s id.ServerID, err error) error {
	var refusal *ports.AgentRefusal
	if err != nil && !isSettled(err) && (!errors.As(err, &refusal) || refusal.Reason == ports.ReasonUnavailable) {
		o[s] = true
	}
	return err
}
