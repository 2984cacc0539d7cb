package roles

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Create makes a role and returns when a log-in with it has been proven. A repeated request returns the same role in its
// current state, and continues a creation that was interrupted. Where the owner is to grant CONNECT, the role stays reserved, for
// Prepare.
//
// FORBIDDEN: a developer or viewer. VALIDATION_ERROR: a field is wrong, or the limit exceeds the role budget.
// MANAGED_ROLE_CONFLICT: rules 6 and 7 of the spec, or the role of the key was removed, or its password expired before it was
// ready. CUSTOM_ROLE_REQUIRES_V3_CLONE. CONNECT_GRANT_REQUIRED: the owner has revoked CONNECT; the role stays sql_ready.
// AGENT_ERROR: the server has not confirmed it; the request can be repeated.
func (r *Roles) Create(ctx context.Context, reached access.Reached, q role.Request) (_ State, err error) {
	defer r.ended(&err)
	if err := reached.Permit(account.Configure, r.model.Gate); err != nil {
		return State{}, err
	}
	q, err = q.Check(r.model)
	if err != nil {
		return State{}, err
	}
	if q.Key, err = idempotency.Parse(string(q.Key)); err != nil {
		return State{}, err
	}
	release, err := reached.MayCall(ctx, r.base)
	if err != nil {
		return State{}, err
	}
	defer release()
	job, err := r.reserve(ctx, reached, q)
	switch {
	case err != nil:
		return State{}, err
	case !settingUp(job.role), r.model.OwnerConnects:
		return job.state(), nil
	}
	return r.setUp(ctx, job, role.Ready)
}

// Prepare creates a reserved role on the server, without permission to log in. A role that is already prepared is returned
// unchanged. FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role's or the database's state forbids it, or the role's
// validity has ended. AGENT_ERROR as for Create.
func (r *Roles) Prepare(ctx context.Context, reached access.Reached, of id.RoleID) (State, error) {
	return r.resume(ctx, reached, of, role.Prepare, role.SQLReady)
}

// Admit lets a prepared role log in. A role that is already ready is returned unchanged. Errors as for Prepare, and
// CONNECT_GRANT_REQUIRED.
func (r *Roles) Admit(ctx context.Context, reached access.Reached, of id.RoleID) (State, error) {
	return r.resume(ctx, reached, of, role.Admit, role.Ready)
}

func (r *Roles) resume(
	ctx context.Context, reached access.Reached, of id.RoleID, e role.Event, goal role.Status,
) (_ State, err error) {
	defer r.ended(&err)
	release, err := reached.PermitCall(ctx, r.base, account.Configure, r.model.Gate)
	if err != nil {
		return State{}, err
	}
	defer release()
	job, todo := r.newSetup(reached), false
	err = r.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		target, err := r.roleOf(ctx, tx, s.Database.ID, of)
		if err != nil {
			return err
		}
		cell, err := s.AdmitsSetup(target, e, r.base.Clock.Now())
		job.record, job.role, todo = s.Database, target, len(cell.Effects) > 0
		return err
	})
	if err != nil {
		return State{}, err
	}
	if !todo {
		return job.state(), nil
	}
	state, err := r.setUp(ctx, job, goal)
	if err == nil && state.Status != goal && state.Status != role.Ready { // somebody else has taken it further
		_, err = state.Status.Decide(e)
	}
	if err != nil {
		return State{}, err
	}
	return state, nil
}

// setup is a role that is being created.
type setup struct {
	record    database.Record
	role      role.Role
	actor     audit.Actor
	requestID string
}

func (r *Roles) newSetup(reached access.Reached) setup {
	return setup{record: reached.Record(), actor: reached.Caller().Actor(), requestID: reached.Caller().RequestID}
}

func (j setup) state() State { return stateOf(j.role, j.record.RoleGeneration) }

// reserve commits the intent, including the password, or finds the role that was created with the key.
func (r *Roles) reserve(ctx context.Context, reached access.Reached, q role.Request) (setup, error) {
	job, made := r.newSetup(reached), false
	draft := role.Role{
		ID: base.NewID[id.RoleID](r.base.Entropy), DatabaseID: reached.Record().ID,
		DisplayName: q.DisplayName, AccessProfile: q.AccessProfile,
		ConnectionLimit: q.ConnectionLimit, Status: role.Reserved, Key: q.Key, Fingerprint: q.Fingerprint(),
		SetupID: base.NewID[id.OperationID](r.base.Entropy), CredentialGeneration: 1,
	}
	var password string
	var err error
	password, draft.Verifier = r.newPassword()
	if draft.Sealed, err = r.base.Secrets.Seal([]byte(password), draft.SecretContext()); err != nil {
		return setup{}, err
	}
	err = r.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		if err := s.Serves(r.model); err != nil {
			return err
		}
		known, err := tx.Roles().ByKey(ctx, s.Database.ID, q.Key)
		if err == nil {
			made, job.record, job.role = false, s.Database, known
			return s.AdmitsReplay(known, q, r.base.Clock.Now())
		}
		if !errors.Is(err, ports.ErrNoRow) {
			return err
		}
		made = true
		if err := s.Admits(q); err != nil {
			return err
		}
		job.record, job.role, err = r.addRole(ctx, tx, s.Database, draft)
		return err
	})
	if err != nil {
		return setup{}, err
	}
	if made {
		r.logSetup(ctx, "role.reserved", job, nil)
	}
	return job, nil
}

func (r *Roles) addRole(
	ctx context.Context, tx ports.Tx, record database.Record, made role.Role,
) (database.Record, role.Role, error) {
	record.RoleGeneration++
	record.RoleOrdinal++
	if err := tx.Databases().Save(ctx, record); err != nil {
		return record, made, err
	}
	made.Ordinal, made.Generation, made.CreatedAt = record.RoleOrdinal, record.RoleGeneration, r.base.Clock.Now()
	made.Username = r.model.Username(record.ID, made.Ordinal)
	var err error
	if made.CredentialExpiresAt, err = r.validUntil(ctx, tx, record, made.CreatedAt); err != nil {
		return record, made, err
	}
	return record, made, tx.Roles().Add(ctx, made)
}

// validUntil is when a password generated now stops being valid; nil if the account's passwords have no time limit.
func (d *driver) validUntil(
	ctx context.Context, tx ports.Tx, record database.Record, now time.Time,
) (*time.Time, error) {
	owner, err := tx.Accounts().Get(ctx, record.AccountID)
	if err != nil {
		return nil, err
	}
	validity := owner.Quotas().CredentialValidity
	if validity == 0 {
		return nil, nil
	}
	until := now.Add(validity).Truncate(time.Microsecond)
	return &until, nil
}
