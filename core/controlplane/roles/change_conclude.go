package roles

import (
	"context"
	"strconv"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// verdict is how a change ends: by an agent's answer, or by a look at the login.
type verdict struct {
	change  role.ChangeEvent
	role    role.Event
	result  role.Result
	refusal string        // why the server, or an operator, ends it without an answer
	actor   audit.Actor   // who ends it without an answer
	entry   audit.Details // of the activity log, about that
}

// conclude stores the agent's answer.
func (d *driver) conclude(ctx context.Context, j changeJob, result role.Result) (outcome, error) {
	v := verdict{result: result}
	v.change, v.role = j.change.Outcome(result)
	return d.endChange(ctx, j, v)
}

// endChange stores how a change ends: change, login and activity entries commit in one transaction. It writes nothing if
// another driver was first.
func (d *driver) endChange(ctx context.Context, j changeJob, v verdict) (outcome, error) {
	ctx, cancel := d.base.Settling(ctx)
	defer cancel()
	o, first := outcome{}, false
	err := d.updateChange(ctx, j.change, func(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) error {
		o = outcome{change: c, dependencies: v.result.Dependencies}
		cell, err := c.Status.Decide(v.change)
		if first = err == nil; !first {
			return nil
		}
		o.change = c.Ended(cell.Next, d.base.Clock.Now())
		o.change.Refusal = v.refusal
		if err := tx.RoleChanges().Save(ctx, o.change); err != nil {
			return err
		}
		if v.entry != nil {
			if err := d.base.Audit(ctx, tx, record, v.actor, audit.ChangeEnded, v.entry); err != nil {
				return err
			}
		}
		if c.RoleID != "" {
			return d.concludeRole(ctx, tx, record, c, v.role, v.result)
		}
		return d.concludeLogin(ctx, tx, record, c, v)
	})
	if err == nil && first {
		d.logChange(ctx, "change."+string(o.change.Status), o.change, nil)
	}
	return o, err
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
