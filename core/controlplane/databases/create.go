package databases

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// CreateRequest asks for a new database.
type CreateRequest struct {
	Name        string
	DisplayName string
	RoleModel   *database.RoleModel   // nil: managed
	Environment *database.Environment // nil: none
	Schedule    *database.Schedule    // nil: the installation's default
	// PostgresVersion is the major version of PostgreSQL; nil: the account's default.
	PostgresVersion *int
	Key             idempotency.Key // empty: every request creates another database
}

// Created is a new database.
type Created = provision.Made

const createRoute = "POST /databases"

// Create makes a database and returns when a log-in through the pooler has been proven. With a key, a repeated request returns
// the same database, even if the first request is still in progress or was cut off by a crash; with its password for
// provision.AgainFor.
//
// KEY_SCOPE_DENIED: not a full-account key. VALIDATION_ERROR: a field is wrong, the name is reserved or taken, or no server has
// the version of PostgreSQL. PLAN_LIMIT: no more databases. DATABASE_STATE_CONFLICT: the key was used for another request.
// AGENT_ERROR: the server failed to create it, and nothing is left; or it has not answered, and creation continues in the
// background.
func (d *Databases) Create(ctx context.Context, c access.Caller, r CreateRequest) (Created, error) {
	if err := c.RequireFullAccount(); err != nil {
		return Created{}, err
	}
	asked, err := r.check()
	if err != nil {
		return Created{}, err
	}
	claim := r.claim(c, asked)
	asked.Schedule = cmp.Or(asked.Schedule, d.base.DefaultSchedule)
	made, _, err := d.Make(ctx, c, provision.Making{Claim: claim, Record: asked})
	return made, err
}

// Make makes a database, and returns when a log-in through the pooler has been proven. Fresh is false where an earlier request
// has made it, or is at it still. PLAN_LIMIT, AGENT_ERROR and VALIDATION_ERROR on "name" are as of Create.
func (d *Databases) Make(ctx context.Context, c access.Caller, m provision.Making) (made Created, fresh bool, err error) {
	// No server is chosen yet, and another may be: it waits for the account's share alone.
	release, err := d.base.Calls.Enter(ctx, c.Account.ID, slot.Unplaced)
	if err != nil {
		return Created{}, false, err
	}
	defer release()
	draft, err := provision.New(d.base, c.Account, m.Record)
	if err != nil {
		return Created{}, false, err
	}
	o, known, err := d.reserve(ctx, c.Origin(), m, draft)
	if err != nil {
		return Created{}, false, err
	}
	if known != "" {
		release() // what it waits for is another request's work, or a batch host's
		made, err = d.awaitCreated(ctx, c, known)
		if err == nil && !m.Lasting {
			made, err = provision.ShownAgain(ctx, d.base, c, made)
		}
		return made, false, err
	}
	made, err = d.finish(ctx, o, c.Viewer(), askAgain)
	return made, true, err
}

// finish makes a database that this process has reserved, and shows it. then says what to do where nobody knows yet.
func (d *Databases) finish(ctx context.Context, o operation.Operation, to database.Viewer, then string) (Created, error) {
	if err := d.base.Work.RunNow(ctx, o, d.base.CreateWait); err != nil {
		return Created{}, createError(err, then)
	}
	made, _, err := d.reveal(ctx, to, o.DatabaseID)
	return made, err
}

// check returns what the request asks for, without a schedule where it chooses none.
func (r CreateRequest) check() (asked database.Record, err error) {
	asked.Name = r.Name
	if asked.RoleModel, err = database.Chosen(r.RoleModel, database.Managed, database.ParseRoleModel); err != nil {
		return asked, err
	}
	if asked.Schedule, err = database.Chosen(r.Schedule, "", database.ParseSchedule); err != nil {
		return asked, err
	}
	if asked.Environment, err = database.Chosen(r.Environment, "", database.ParseEnvironment); err != nil {
		return asked, err
	}
	if r.PostgresVersion != nil {
		asked.PostgresVersion = *r.PostgresVersion
		if err = pgversion.Check(asked.PostgresVersion); err != nil {
			return asked, err
		}
	}
	if err = database.ValidateChosenName(r.Name); err != nil {
		return asked, err
	}
	asked.DisplayName, err = database.ValidateDisplayName(r.DisplayName)
	return asked, err
}

// fingerprint is the same whatever the defaults of schedules and versions are at the time.
func fingerprint(asked database.Record) idempotency.Fingerprint {
	return idempotency.NewFingerprint(
		asked.Name, asked.DisplayName, string(asked.RoleModel), string(asked.Environment), string(asked.Schedule),
		strconv.Itoa(asked.PostgresVersion))
}

// reserve commits the intent: record, logins, key and operation in one transaction. If an earlier request has done so, it returns
// the database of that.
func (d *Databases) reserve(
	ctx context.Context, by work.Origin, m provision.Making, draft provision.Draft,
) (o operation.Operation, known id.DatabaseID, err error) {
	err = d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if m.Claim != nil {
			if known, err = m.Claim(ctx, tx, &draft); err != nil || known != "" {
				return err
			}
		}
		place := draft.Place
		if m.On != "" {
			place = draft.PlaceOn
		}
		if err := place(ctx, tx, m.On); err != nil {
			return err
		}
		o = d.base.Work.Own(draft.Record, KindCreate, operation.Encode(operation.CreateInput{On: m.On, Ordered: m.Ordered}), by)
		return draft.Store(ctx, tx, func() error {
			if err := tx.Operations().Add(ctx, o); err != nil || m.Also == nil {
				return err
			}
			return m.Also(ctx, tx, draft.Record)
		})
	})
	return o, known, err
}

// claim stores the request's key; nil for a request without one.
func (r CreateRequest) claim(
	c access.Caller, asked database.Record,
) func(ctx context.Context, tx ports.Tx, d *provision.Draft) (id.DatabaseID, error) {
	if r.Key == "" {
		return nil
	}
	of := fingerprint(asked)
	return func(ctx context.Context, tx ports.Tx, d *provision.Draft) (id.DatabaseID, error) {
		stored, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
			AccountID: c.Account.ID, Route: createRoute, Key: r.Key, Fingerprint: of,
			ResourceID: string(d.Record.ID), CreatedAt: d.Record.CreatedAt,
		})
		if err != nil || fresh {
			return "", err
		}
		return id.DatabaseID(stored.ResourceID), stored.Replay(of, fault.DatabaseStateConflict)
	}
}

// askAgain is what a caller does whose request has not shown whether the database is made.
const askAgain = "repeat the request, with the same Idempotency-Key where it has one, or read the database's status"

// createError is the error for a creation that did not finish within the request; then says what to do.
func createError(err error, then string) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.AgentError,
		"the database server has not confirmed the database; creation goes on in the background: %s", then)
}

// awaitPoll is how often a repeated request checks whether the first one is done.
const awaitPoll = 50 * time.Millisecond

// awaitCreated waits until the database is no longer being created, at most Config.CreateWait.
func (d *Databases) awaitCreated(ctx context.Context, c access.Caller, db id.DatabaseID) (Created, error) {
	ctx, cancel := context.WithTimeout(ctx, d.base.CreateWait)
	defer cancel()
	tick := time.NewTicker(awaitPoll)
	defer tick.Stop()
	for {
		created, owner, err := d.reveal(ctx, c.Viewer(), db)
		switch {
		case err != nil:
			return Created{}, err
		case created.Record.Status != database.Creating:
			return provision.WithoutStalePassword(ctx, d.base, c, created, owner), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Created{}, createError(ctx.Err(), askAgain)
		}
	}
}

// reveal returns the database with the password from its creation, unless the owner's password has changed since.
func (d *Databases) reveal(
	ctx context.Context, to database.Viewer, db id.DatabaseID,
) (created Created, owner ports.LoginSecret, err error) {
	failed := false
	err = d.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		to.Deleted = true
		if created.Record, _, err = access.See(ctx, tx, to, db); err != nil {
			return err
		}
		if created.Record.Status.Gone() {
			return fault.New(fault.DatabaseStateConflict, "the database that was made for this request is deleted")
		}
		if failed, err = notMade(ctx, tx, created.Record); err != nil {
			return err
		}
		owner, err = tx.Logins().Get(ctx, db, database.OwnerLogin)
		return err
	})
	switch {
	case err != nil:
		return Created{}, owner, base.NotFound(err,
			fault.New(fault.AgentError, "the database could not be made; nothing is left of it"))
	case failed:
		return Created{}, owner, fault.New(fault.AgentError, "the database could not be made; what is left of it is being removed")
	}
	created, err = provision.Reveal(d.base, created.Record, owner)
	return created, owner, err
}

// notMade reports whether the creation of a database has failed. One that was made before can be in the same status.
func notMade(ctx context.Context, tx ports.Tx, r database.Record) (bool, error) {
	if r.Status != database.Error {
		return false, nil
	}
	open, err := tx.Operations().Open(ctx, r.ID)
	if errors.Is(err, ports.ErrNoRow) {
		return true, nil
	}
	return open.Kind == KindCreate, err
}

// auditCreated is the activity entry of a finished creation.
func auditCreated(r database.Record, by operation.Ordered) audit.Details {
	details := audit.Details{
		"name": r.Name, "roleModel": string(r.RoleModel), "scheduledBackup": string(r.Schedule),
		"postgresVersion": strconv.Itoa(r.PostgresVersion),
	}
	maps.Copy(details, by.Details())
	return details
}
