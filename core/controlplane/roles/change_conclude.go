package roles

import (
	"context"
	"strconv"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// verdict is how a change ends: by an agent's answer, or by a look at the login.
type verdict struct {
	change  role.ChangeEvent
	role    role.Event
	result  role.Result
	seen    role.Observation // of the look
	refusal string           // why the server, or an operator, ends it without an answer
	actor   audit.Actor      // who ends it without an answer
	entry   audit.Details    // of the activity log, about that
}

// conclude stores the agent's answer.
func (a *attempt) conclude(ctx context.Context, result role.Result) (work.Next, error) {
	v := verdict{result: result}
	v.change, v.role = a.change.Outcome(result)
	return a.end(ctx, v)
}

// end stores how a change ends: change, login, activity entries and operation commit in one transaction.
func (a *attempt) end(ctx context.Context, v verdict) (work.Next, error) {
	ctx, cancel := a.base.Settling(ctx)
	defer cancel()
	cell, err := a.change.Status.Decide(v.change)
	if err != nil {
		return work.Next{}, err
	}
	e := work.Ending{On: operation.Succeed, Result: operation.Encode(findings{v.result.Dependencies, v.seen})}
	if cell.Next == role.Refused {
		e.On, e.Cause = operation.Fail, errRefused(a.change, v.refusal)
	}
	e.Also = func(ctx context.Context, tx ports.Tx) error {
		c, err := tx.RoleChanges().Get(ctx, a.record.ID, a.change.ID) // its password may have been encrypted anew
		if err != nil {
			return err
		}
		ended := c.Ended(cell.Next, a.base.Clock.Now())
		ended.Refusal = v.refusal
		if err := tx.RoleChanges().Save(ctx, ended); err != nil {
			return err
		}
		if v.entry != nil {
			if err := a.base.Audit(ctx, tx, a.record, v.actor, audit.ChangeEnded, v.entry); err != nil {
				return err
			}
		}
		if c.RoleID != "" {
			return a.concludeRole(ctx, tx, a.record, c, v.role, v.result)
		}
		return a.concludeLogin(ctx, tx, a.record, c, v)
	}
	next, err := a.Finish(ctx, e)
	if err == nil && a.change.Kind == role.Expiry {
		a.expireNext(ctx, a.record.ID)
	}
	return next, err
}

func (d *driver) concludeRole(
	ctx context.Context, tx ports.Tx, record database.Record, c role.Change, on role.Event, result role.Result,
) error {
	before, err := tx.Roles().Get(ctx, record.ID, c.RoleID)
	if err != nil {
		return err
	}
	after, err := before.Concluded(c, on)
	if err != nil {
		return err
	}
	if err := tx.Roles().Save(ctx, after); err != nil {
		return err
	}
	action, tell := roleActions[on]
	if !tell || before.Status == after.Status && on == role.Kept {
		return nil
	}
	details := roleDetails(after)
	details["operationId"] = string(c.ID)
	if c.Kind == role.Removal {
		details["dependencies"] = strconv.FormatBool(result.Dependencies.Any())
	} else {
		prove(details, result.Proof)
	}
	if c.Kind == role.Expiry {
		action = audit.RoleExpired
	}
	return d.base.Audit(ctx, tx, record, c.Actor, action, details)
}

// roleActions are the activity log's entries for the end of a change. A rotation that changed nothing has none.
var roleActions = map[role.Event]audit.Action{ //nolint:exhaustive // the events that end a change
	role.Rotated: audit.RoleRotated, role.Shut: audit.RoleRevoked, role.Kept: audit.RoleRevoked, role.Dropped: audit.RoleRemoved,
}

func (d *driver) concludeLogin(
	ctx context.Context, tx ports.Tx, record database.Record, c role.Change, v verdict,
) error {
	if v.change != role.Confirmed {
		return nil
	}
	err := tx.Logins().Replace(ctx, ports.LoginSecret{
		DatabaseID: record.ID, Login: c.Login, Username: c.Username, Generation: c.CredentialGeneration,
		Verifier: c.Verifier, Sealed: c.Sealed,
	})
	if err != nil {
		return err
	}
	details := loginDetails(c.Login, c.Username, c.CredentialGeneration)
	details["operationId"] = string(c.ID)
	prove(details, v.result.Proof)
	return d.base.Audit(ctx, tx, record, c.Actor, audit.LoginRotated, details)
}

// prove adds what the agent observed.
func prove(d audit.Details, p role.Proof) {
	d["clientsClosed"], d["sessionsEnded"] = strconv.Itoa(p.ClientsClosed), strconv.Itoa(p.SessionsEnded)
	for name, seen := range map[string]bool{
		"noneLeft": p.NoneLeft, "oldRefused": p.OldRefused, "newAccepted": p.NewAccepted, "connectMissing": p.ConnectMissing,
		"lapsed": p.Lapsed, "closed": p.Closed, "absent": p.Absent,
	} {
		d[name] = strconv.FormatBool(seen)
	}
}
