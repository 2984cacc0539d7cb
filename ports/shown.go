package ports

import (
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/webhook"
)

// errInternal is all that a caller is shown of an internal error.
var errInternal = fault.New(fault.InternalError, "internal error; retry the same request")

// errAway is what a caller is shown while the metadata database is away, the key ring cannot be used, or the hosts of the
// installation itself are not known yet.
var errAway = &fault.Error{
	Code: fault.ServerBusy, Message: "the service cannot reach its own data at the moment; retry the same request",
	RetryAfter: 5 * time.Second,
}

// awayPause is when to ask again for what a database server has to do that is away.
const awayPause = 15 * time.Second

// serverAway reports whether an agent has certainly not done what failed, since it, or what it works with, is away for now.
func serverAway(err error) bool {
	return NeverHeard(err) || command.RefusedFor(err, command.ReasonUnavailable)
}

// Shown returns the error itself if it was made for a caller, and else what a caller is shown in its place. Failed reports
// whether the log must have the error: whoever is busy or in maintenance has not failed; who cannot reach the service's own data
// has. An AGENT_ERROR whose server is away says so, and when to ask again.
func Shown(err error) (shown *fault.Error, failed bool) {
	if errors.As(err, &shown) && shown.Code.Known() {
		failed = shown.Code.Status() >= 500 && shown.Code != fault.Maintenance && shown.Code != fault.ServerBusy
		if shown.Code == fault.AgentError && serverAway(err) {
			later := *shown
			later.Message += " (the database server is away at the moment: ask again in " + awayPause.String() + ")"
			later.RetryAfter = awayPause
			shown = &later
		}
		return shown, failed
	}
	if Away(err) || errors.Is(err, webhook.ErrOwnUnknown) {
		return errAway, true
	}
	return errInternal, true
}

// Away reports whether the service lacks what all of it needs: it is the host's trouble, and not the request's.
func Away(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoRing) }
