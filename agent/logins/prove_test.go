package logins

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// A new password is proven by both ways together.
func TestLogInsAreJudgedTogether(t *testing.T) {
	noConnect, broken := &pq.Error{Code: pqerror.InsufficientPrivilege}, errors.New("broken")
	noLonger := fmt.Errorf("%w: %w", pooler.ErrFailing, pooler.ErrNoSession)
	for what, c := range map[string]struct {
		direct, pooled error
		connect        bool
		want           error // nil: accepted
	}{
		"both":                               {nil, nil, true, nil},
		"no server connection to be had":     {nil, fmt.Errorf("x: %w", pooler.ErrNoServer), true, nil},
		"no session to be had":               {nil, pooler.ErrNoSession, true, nil},
		"no session to be had for long":      {nil, noLonger, true, nil},
		"no way into PostgreSQL":             {nil, fmt.Errorf("x: %w", pooler.ErrFailing), true, pooler.ErrFailing},
		"no way in, for lack of CONNECT":     {nil, fmt.Errorf("%w: %w", pooler.ErrFailing, noConnect), true, pooler.ErrFailing},
		"without CONNECT, as the pooler too": {noConnect, pooler.ErrFailing, false, nil},
		"without CONNECT":                    {noConnect, pooler.ErrNoServer, false, nil},
		"without CONNECT, and broken":        {noConnect, broken, false, broken},
		"without CONNECT, and refused":       {noConnect, pooler.ErrRefused, false, pooler.ErrRefused},
		"refused directly":                   {pooler.ErrRefused, nil, true, pooler.ErrRefused},
		"refused directly, pool full":        {pooler.ErrRefused, pooler.ErrNoServer, true, pooler.ErrRefused},
		"refused by the pooler":              {nil, pooler.ErrRefused, true, pooler.ErrRefused},
		"nothing known directly":             {broken, nil, true, broken},
		"nothing known directly, no server":  {broken, pooler.ErrNoServer, true, broken},
		"nothing known of the pooler":        {nil, broken, true, broken},
	} {
		connect, err := judge(c.direct, c.pooled)
		if connect != c.connect || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %t, %v", what, connect, err)
		}
		if errors.Is(err, pooler.ErrFailing) && ledger.AsRefusal(err).Reason != command.ReasonUnavailable {
			t.Errorf("%s: it is given up: %v", what, err)
		}
	}
}

// What PgBouncer only remembers is asked for again.
func TestRememberedFailureIsNoAnswer(t *testing.T) {
	for err, want := range map[error]bool{
		pooler.ErrNoSession: true, pooler.ErrRefused: true, pooler.ErrFailing: false, pooler.ErrNoServer: false,
		fmt.Errorf("%w: %w", pooler.ErrFailing, pooler.ErrNoSession):                            false,
		fmt.Errorf("%w: %w", pooler.ErrFailing, &pq.Error{Code: pqerror.InsufficientPrivilege}): false,
	} {
		if got := isAnswered(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}

// What one attempt has told is not lost by a later one that breaks off.
func TestAcceptanceIsNotForgotten(t *testing.T) {
	broken := errors.New("broken")
	for what, c := range map[string]struct{ before, now, want error }{
		"first":            {nil, broken, broken},
		"accepted, broken": {pooler.ErrNoServer, broken, pooler.ErrNoServer},
		"accepted, in":     {pooler.ErrNoServer, nil, nil},
		"accepted, no":     {pooler.ErrNoServer, pooler.ErrRefused, pooler.ErrRefused},
		"failing, broken":  {pooler.ErrFailing, broken, pooler.ErrFailing},
		"waited, failing":  {pooler.ErrNoServer, pooler.ErrFailing, pooler.ErrFailing},
		"failing, waited":  {pooler.ErrFailing, pooler.ErrNoServer, pooler.ErrNoServer},
		"failing, no":      {pooler.ErrFailing, pooler.ErrRefused, pooler.ErrRefused},
		"broken, accepted": {broken, pooler.ErrNoServer, pooler.ErrNoServer},
	} {
		if got := moreTelling(c.before, c.now); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v", what, got)
		}
	}
}
