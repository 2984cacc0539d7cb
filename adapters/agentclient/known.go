package agentclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// known is what an agent has last named in its capabilities. It is asked when something is first needed, and each time that
// something is missing: its callers try again at a pace of their own, and the agent may have been upgraded.
type known struct {
	mu    sync.Mutex
	words []string
}

// require is ReasonTooOld where the agent does not know all that is needed. Nothing of the command is sent then: what fails here
// is a refusal, or ErrAgentUnreachable.
func (k *known) require(ctx context.Context, a ports.Agent, needs []string) error {
	if k.missing(needs) == "" {
		return nil
	}
	now, err := ports.Ask(ctx, a, command.AskCapabilities{})
	if err != nil {
		var no *command.Refusal
		if errors.As(err, &no) {
			return err
		}
		return fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	k.set(now.Commands)
	if word := k.missing(needs); word != "" {
		return command.Refuse(command.ReasonTooOld, "the agent is too old: it does not know %s", word)
	}
	return nil
}

func (k *known) missing(needs []string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, word := range needs {
		if !slices.Contains(k.words, word) {
			return word
		}
	}
	return ""
}

func (k *known) set(words []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.words = words
}

func (k *known) forget() { k.set(nil) }
