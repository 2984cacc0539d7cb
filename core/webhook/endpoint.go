package webhook

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// MaxEnabled is the maximum number of enabled endpoints of an account.
const MaxEnabled = 50

// Endpoint is the record of a webhook endpoint (spec, "Webhook endpoint"). It is never removed: DELETE disables it.
type Endpoint struct {
	ID                  id.WebhookID   `db:"id"`
	AccountID           id.AccountID   `db:"account_id"`
	DatabaseID          *id.DatabaseID `db:"database_id"` // nil: all databases of the account
	URL                 string         `db:"url"`
	SealedSecret        []byte         `db:"sealed_secret"`        // encrypted under SecretContext
	ConsecutiveFailures int            `db:"consecutive_failures"` // failed attempts since the last success or rotation
	DisabledAt          *time.Time     `db:"disabled_at"`          // nil while it is enabled
	CreatedAt           time.Time      `db:"created_at"`
	CreatedBy           id.UserID      `db:"created_by"` // empty for one that a host of a version without persons made
	UpdatedAt           time.Time      `db:"updated_at"` // the last rotation, disabling or creation
}

// Status derives from DisabledAt.
func (e Endpoint) Status() Status {
	if e.DisabledAt != nil {
		return Disabled
	}
	return Enabled
}

// Wants reports whether a new event of a database goes to the endpoint. Every event name is wanted.
func (e Endpoint) Wants(account id.AccountID, db id.DatabaseID) bool {
	return e.Status() == Enabled && e.AccountID == account && (e.DatabaseID == nil || *e.DatabaseID == db)
}

// DecideRoom returns INVALID_WEBHOOK_ENDPOINT if an account with that many enabled endpoints may not have another.
func DecideRoom(enabled int) error {
	if enabled >= MaxEnabled {
		return fault.New(fault.InvalidWebhookEndpoint, "the account already has %d enabled endpoints", MaxEnabled)
	}
	return nil
}

// Rotated is the endpoint with a new secret: enabled, and with no failures counted. For a disabled one, check DecideRoom first.
func (e Endpoint) Rotated(sealed []byte, now time.Time) Endpoint {
	return e.apply(Rotate, sealed, now)
}

// DisabledByUser is the endpoint after DELETE. If it is already disabled, it keeps DisabledAt.
func (e Endpoint) DisabledByUser(now time.Time) Endpoint { return e.apply(Disable, nil, now) }

// Succeeded is the endpoint after an attempt that was delivered.
func (e Endpoint) Succeeded(now time.Time) Endpoint { return e.apply(AttemptSucceeded, nil, now) }

// Failed is the endpoint after a failed attempt. exhausted says that the delivery has used all its attempts; then an endpoint
// with DisableAfter failures or more is disabled.
func (e Endpoint) Failed(exhausted bool, now time.Time) Endpoint {
	switch {
	case !exhausted:
		return e.apply(AttemptFailed, nil, now)
	case e.ConsecutiveFailures+1 >= DisableAfter:
		return e.apply(ExhaustedAtLimit, nil, now)
	default:
		return e.apply(ExhaustedBelowLimit, nil, now)
	}
}

// apply applies an event by the table.
func (e Endpoint) apply(on Event, sealed []byte, now time.Time) Endpoint {
	for _, effect := range Transitions[e.Status()][on].Effects {
		switch effect {
		case CountFailure:
			e.ConsecutiveFailures++
		case ResetFailures:
			e.ConsecutiveFailures = 0
		case ReplaceSecret:
			e.SealedSecret, e.UpdatedAt = sealed, now
		case SetDisabledAt:
			e.DisabledAt, e.UpdatedAt = &now, now
		case ClearDisabledAt:
			e.DisabledAt = nil
		}
	}
	return e
}
