package executor

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

func answer(code string) error {
	return fmt.Errorf("wrapped: %w", &pq.Error{Code: pqerror.Code(code), Message: "secret words"})
}

// Only what PostgreSQL says of the request itself is final; all else may be sent again.
func TestEveryErrorHasItsWord(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"refusal":               {fmt.Errorf("x: %w", refuse(protocol.ReasonStale, "m")), protocol.ReasonStale},
		"one of two":            {errors.Join(answer("57P01"), refuse(protocol.ReasonNameTaken, "m")), protocol.ReasonNameTaken},
		"no privilege":          {answer("42501"), protocol.ReasonFailed},
		"bad value":             {answer("22023"), protocol.ReasonFailed},
		"other agent":           {answer("PGH01"), protocol.ReasonUnavailable},
		"crash of the server":   {answer("PGH02"), protocol.ReasonUnavailable},
		"shutdown":              {answer("57P01"), protocol.ReasonUnavailable},
		"too many connections":  {answer("53300"), protocol.ReasonUnavailable},
		"disk full":             {answer("53100"), protocol.ReasonUnavailable},
		"in use":                {answer("55006"), protocol.ReasonUnavailable},
		"lost connection":       {driver.ErrBadConn, protocol.ReasonUnavailable},
		"PgBouncer is gone":     {fmt.Errorf("x: %w", pooler.ErrUnreachable), protocol.ReasonUnavailable},
		"time is up":            {context.DeadlineExceeded, protocol.ReasonUnavailable},
		"something else":        {errors.New("secret words"), protocol.ReasonUnavailable},
		"discarded":             {discard{answer("42P04")}, protocol.ReasonFailed},
		"discarded and unknown": {discard{errors.New("x")}, protocol.ReasonUnavailable},
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
