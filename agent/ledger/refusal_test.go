package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

func answer(code string) error {
	return fmt.Errorf("wrapped: %w", &pq.Error{Code: pqerror.Code(code), Message: "secret words"})
}

// Only what PostgreSQL says of the request itself is final; all else may be sent again.
func TestEveryErrorHasItsWord(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		want command.Reason
	}{
		"refusal":               {fmt.Errorf("x: %w", command.Refuse(command.ReasonStale, "m")), command.ReasonStale},
		"one of two":            {errors.Join(answer("57P01"), command.Refuse(command.ReasonNameTaken, "m")), command.ReasonNameTaken},
		"no privilege":          {answer("42501"), command.ReasonFailed},
		"bad value":             {answer("22023"), command.ReasonFailed},
		"other agent":           {answer("PGH01"), command.ReasonUnavailable},
		"crash of the server":   {answer("PGH02"), command.ReasonUnavailable},
		"shutdown":              {answer("57P01"), command.ReasonUnavailable},
		"too many connections":  {answer("53300"), command.ReasonUnavailable},
		"disk full":             {answer("53100"), command.ReasonUnavailable},
		"in use":                {answer("55006"), command.ReasonUnavailable},
		"lost connection":       {driver.ErrBadConn, command.ReasonUnavailable},
		"PgBouncer is gone":     {fmt.Errorf("x: %w", pooler.ErrUnreachable), command.ReasonUnavailable},
		"time is up":            {context.DeadlineExceeded, command.ReasonUnavailable},
		"something else":        {errors.New("secret words"), command.ReasonUnavailable},
		"discarded":             {pg.Discarded{Cause: answer("42P04")}, command.ReasonFailed},
		"discarded and unknown": {pg.Discarded{Cause: errors.New("x")}, command.ReasonUnavailable},
	} {
		got := AsRefusal(c.err)
		if got.Reason != c.want {
			t.Errorf("%s: %s, want %s", what, got.Reason, c.want)
		}
		if strings.Contains(got.Message, "secret words") {
			t.Errorf("%s: its message repeats the cause", what)
		}
	}
}
