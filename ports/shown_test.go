package ports

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Only an error of a server that is away says that, and when to ask again; each keeps what it says of the request.
func TestAnAgentErrorSaysWhetherTheServerIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		code  fault.Code
		away  bool
	}{
		"unreachable":    {fmt.Errorf("%w: 10.0.0.1: refused", ErrAgentUnreachable), fault.AgentError, true},
		"PostgreSQL":     {command.Refuse(command.ReasonUnavailable, "PostgreSQL is down"), fault.AgentError, true},
		"other protocol": {command.Refuse(command.ReasonOtherProtocol, "too old"), fault.AgentError, true},
		"failed":         {command.Refuse(command.ReasonFailed, "disk"), fault.AgentError, false},
		"unknown":        {errors.New("the outcome at the agent is unknown"), fault.AgentError, false},
		"another code":   {ErrAgentUnreachable, fault.BackupConflict, false},
	} {
		e := fault.Wrap(c.cause, c.code, "the backup cannot be started")
		shown, _ := Shown(fmt.Errorf("request: %w", e))
		away := strings.Contains(shown.Message, "the database server is away at the moment")
		if away != c.away || (shown.RetryAfter == awayPause) != c.away || !strings.HasPrefix(shown.Message, e.Message) ||
			shown.Code != c.code || strings.Contains(shown.Message, "10.0.0.1") {
			t.Errorf("%s: %+v", name, shown)
		}
		if e.RetryAfter != 0 {
			t.Errorf("%s: the error itself has changed", name)
		}
	}
}
