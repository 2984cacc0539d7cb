// Package querytimeouts sets the profile of a database's query timeouts, and says what is in force.
package querytimeouts

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/ports"
)

// QueryTimeouts reads and sets query timeouts (spec, section "Query-timeout defaults"). Only a database's owner may do either.
type QueryTimeouts struct {
	base     *base.Base
	settings *settings.Settings
}

// New makes the use cases, and registers their kind.
func New(p *base.Base, s *settings.Settings) *QueryTimeouts {
	q := &QueryTimeouts{base: p, settings: s}
	q.register()
	return q
}

// State is what is wanted of a database's query timeouts, and what is so.
type State struct {
	database.Settings
	// Change is the last change; nil where there was none.
	Change *operation.Operation
	// InForce is what the server reports; nil where it did not in time.
	InForce *command.SettingsInForce
}

// Get returns the state of a database. The server is asked for Config.SettingsWait at most. FORBIDDEN: a member.
func (q *QueryTimeouts) Get(ctx context.Context, r access.Reached) (State, error) {
	if err := r.Permit(account.Own); err != nil {
		return State{}, err
	}
	s, err := q.stored(ctx, r, r.Record().TimeoutOperation)
	if err != nil {
		return s, err
	}
	if release, free := q.base.Calls.EnterNow(r.Caller().Account.ID, r.Record().ServerID); free {
		defer release()
		s.InForce = q.inForce(ctx, r.Record())
	}
	return s, nil
}

// Set makes a profile that of a database, and returns the state with the change, which is open where the server has not
// confirmed it in time: it then goes on in the background. The same key with the same profile returns what it began.
//
// VALIDATION_ERROR on "profile". FORBIDDEN: a member. QUERY_TIMEOUT_CONFLICT: another change is open, or the key was used for
// another profile. DATABASE_STATE_CONFLICT: the status, an open operation or an unfinished change of a login forbids it.
// AGENT_ERROR: the server cannot be reached, or has refused. AGENT_ROUTE_UNAVAILABLE: its agent is to be updated. With the
// last two nothing was changed.
func (q *QueryTimeouts) Set(
	ctx context.Context, r access.Reached, p querytimeout.Profile, key idempotency.Key,
) (State, error) {
	if _, err := querytimeout.Parse(string(p)); err != nil {
		return State{}, err
	}
	release, err := r.PermitCall(ctx, q.base, account.Own)
	if err != nil {
		return State{}, err
	}
	defer release()
	_, unable := q.ask(ctx, r.Record(), q.base.RoleWait) // so that an outage is found before anything is stored
	of, own, err := q.reserve(ctx, r, p, key, unable)
	if err != nil {
		return State{}, err
	}
	if own != nil {
		err = q.base.Work.RunNow(ctx, *own, q.base.RoleWait)
		if err != nil && fault.CodeOf(err) != fault.InternalError { // which would be one whose outcome is not known yet
			return State{}, err
		}
	}
	return q.begun(ctx, r, of)
}

// begun is the state of a database with the change that a key began. A change that failed is returned as its error.
func (q *QueryTimeouts) begun(ctx context.Context, r access.Reached, of id.OperationID) (State, error) {
	ctx, cancel := q.base.Settling(ctx)
	defer cancel()
	s, err := q.stored(ctx, r, of)
	if err != nil {
		return s, err
	}
	if f := s.Change.Failure(); f != nil && s.Change.Status.Final() {
		return s, fault.New(f.Code, "%s", f.Message)
	}
	s.InForce = q.inForce(ctx, r.Record())
	return s, nil
}

// stored reads the change before the settings, so that those of a change that has ended are never older.
func (q *QueryTimeouts) stored(ctx context.Context, r access.Reached, of id.OperationID) (State, error) {
	if of == "" {
		return State{Settings: r.Record().Settings}, nil
	}
	s, err := ports.Read(ctx, q.base.Store, func(ctx context.Context, tx ports.Tx) (State, error) {
		change, err := tx.Operations().Get(ctx, of)
		if err != nil {
			return State{}, err
		}
		record, _, err := access.See(ctx, tx, r.Caller().Viewer(), r.Record().ID)
		return State{Settings: record.Settings, Change: &change}, err
	})
	return s, base.NotFound(err, base.ErrDatabaseNotFound())
}

// inForce is what the server reports; nil where it does not, which is only logged.
func (q *QueryTimeouts) inForce(ctx context.Context, r database.Record) *command.SettingsInForce {
	answer, err := q.ask(ctx, r, q.base.SettingsWait)
	if err != nil {
		q.base.Log(ctx, "query_timeouts.unknown", r.ID, err)
		return nil
	}
	return &answer
}

// ask has the server report what is in force. AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE.
func (q *QueryTimeouts) ask(
	ctx context.Context, r database.Record, most time.Duration,
) (answer command.SettingsInForce, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	agent, err := q.base.AgentOf(ctx, r.ServerID)
	if err == nil {
		answer, err = ports.Ask(ctx, agent, command.Settings{DatabaseID: r.ID})
	}
	switch {
	case err == nil:
		return answer, nil
	case base.Unserved(err):
		return answer, fault.Wrap(err, fault.AgentRouteUnavailable,
			"query timeouts are unavailable until the agent of the database server is updated; nothing was changed")
	}
	return answer, fault.Wrap(err, fault.AgentError, "the database server cannot be reached; nothing was changed")
}

// reserve commits the intent: profile, key and operation in one transaction. It returns the operation that the key began, and
// own where that is this request's. unable is why a new change cannot be carried out; a repetition needs no server.
func (q *QueryTimeouts) reserve(
	ctx context.Context, r access.Reached, p querytimeout.Profile, key idempotency.Key, unable error,
) (of id.OperationID, own *operation.Operation, err error) {
	same := idempotency.NewFingerprint(string(p))
	err = r.Update(ctx, q.base, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		own = nil
		input := operation.QueryTimeoutInput{From: string(record.TimeoutEffective), Profile: string(p)}
		o := q.base.Work.Own(record, Kind, operation.Encode(input), r.Caller().Origin())
		known, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
			AccountID: record.AccountID, Route: "databases/" + string(record.ID) + "/query-timeouts", Key: key, Fingerprint: same,
			ResourceID: string(o.ID), CreatedAt: o.CreatedAt,
		})
		if err != nil {
			return err
		}
		of = id.OperationID(known.ResourceID)
		if !fresh {
			return known.Replay(same, fault.QueryTimeoutConflict)
		}
		if err := begins(ctx, tx, record); err != nil {
			return err
		}
		if unable != nil {
			return unable
		}
		own = &o
		record.TimeoutProfile, record.TimeoutOperation = p, o.ID
		if err := settings.Save(ctx, tx, record); err != nil {
			return err
		}
		return tx.Operations().Add(ctx, o)
	})
	return of, own, err
}

// begins decides whether a change may begin on a database that is locked. One that is stopped has settings too: they hold once
// it is started.
func begins(ctx context.Context, tx ports.Tx, r database.Record) error {
	if _, err := r.Status.Decide(database.Configure); err != nil {
		return err
	}
	var under querytimeout.UnderWay
	open, err := tx.Operations().Open(ctx, r.ID)
	switch {
	case err == nil && open.Kind == Kind:
		under.Change = open.ID
	case err == nil:
		under.Operation = open.ID
	case !errors.Is(err, ports.ErrNoRow):
		return err
	}
	pending, err := tx.RoleChanges().Pending(ctx, r.ID)
	if err != nil && !errors.Is(err, ports.ErrNoRow) {
		return err
	}
	under.LoginChange = pending.ID
	return under.Begin()
}
