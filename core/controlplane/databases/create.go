package databases

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// CreateRequest asks for a new database.
type CreateRequest struct {
	Name        string
	DisplayName string
	RoleModel   database.RoleModel   // empty: managed
	Environment database.Environment // empty: none
	Schedule    database.Schedule    // empty: none
	Key         idempotency.Key      // empty: every request creates another database
}

// Created is a new database. Password and ConnectionString are empty in the answer to a repeated request once the owner's
// password has changed.
type Created struct {
	Record           database.Record
	Username         string
	Password         string
	ConnectionString string
}

const createRoute = "POST /databases"

// Create makes a database and returns when a log-in through the pooler has been proven. With a key, a repeated request returns
// the same database, even if the first request is still in progress or was cut off by a crash.
//
// KEY_SCOPE_DENIED: not a full-account key. VALIDATION_ERROR: a field is wrong, or the name is reserved or taken. PLAN_LIMIT:
// no more databases. DATABASE_STATE_CONFLICT: the key was used for another request. AGENT_ERROR: the server failed to create
// it, and nothing is left; or it has not answered, and creation continues in the background.
func (d *Databases) Create(ctx context.Context, c access.Caller, r CreateRequest) (Created, error) {
	if err := c.RequireFullAccount(); err != nil {
		return Created{}, err
	}
	if err := r.check(); err != nil {
		return Created{}, err
	}
	// No server is chosen yet, and another may be: it waits for the account's share alone.
	release, err := d.plane.Calls.Enter(ctx, c.Account.ID, slot.Unplaced)
	if err != nil {
		return Created{}, err
	}
	defer release()
	draft, err := d.draft(c, r)
	if err != nil {
		return Created{}, err
	}
	o, known, err := d.reserve(ctx, c, r, draft)
	if err != nil {
		return Created{}, err
	}
	if known != "" {
		release() // what it waits for is another request's work, or a batch host's
		return d.awaitCreated(ctx, c, known)
	}
	if err := d.plane.Work.RunNow(ctx, o, d.plane.CreateWait); err != nil {
		return Created{}, createError(err)
	}
	created, _, err := d.reveal(ctx, c, o.DatabaseID)
	return created, err
}

func (r *CreateRequest) check() (err error) {
	if err := database.ValidateName(r.Name); err != nil {
		return err
	}
	r.DisplayName, err = database.ValidateDisplayName(r.DisplayName)
	if r.RoleModel == "" {
		r.RoleModel = database.Managed
	}
	if r.Schedule == "" {
		r.Schedule = database.NoSchedule
	}
	return err
}

func (r CreateRequest) fingerprint() idempotency.Fingerprint {
	return idempotency.NewFingerprint(
		r.Name, r.DisplayName, string(r.RoleModel), string(r.Environment), string(r.Schedule))
}

// draft is everything about a new database that must be stored before its server hears of it.
type draft struct {
	record   database.Record
	logins   []ports.LoginSecret
	verified *sync.WaitGroup // wait for it before using the logins: it computes their verifiers
}

func (d *Databases) draft(c access.Caller, r CreateRequest) (draft, error) {
	now := d.plane.Clock.Now()
	record := database.Record{
		ID: plane.NewID[id.DatabaseID](d.plane.Entropy), AccountID: c.Account.ID, Name: r.Name, DisplayName: r.DisplayName,
		RoleModel: r.RoleModel, Environment: r.Environment, Schedule: r.Schedule, Status: database.Creating, CreatedAt: now,
		Settings: database.NoSettings(), Plan: c.Account.Plan, DatabaseBytes: c.Account.DatabaseBytes,
	}
	if r.RoleModel == database.Managed {
		record.ConnectionCap = c.Account.Quotas().ConnectionCap
	}
	if r.Schedule == database.Daily {
		next := backup.NextDaily(record.ID, now)
		record.NextBackupAt = &next
	}
	made := draft{record: record, verified: new(sync.WaitGroup)}
	var err error
	made.logins, err = d.newLogins(record, made.verified)
	return made, err
}

// newLogins generates the passwords of a new database. Each verifier takes a millisecond to compute, so they are computed in
// parallel, concurrently with the first statements of reserve.
func (d *Databases) newLogins(record database.Record, computing *sync.WaitGroup) ([]ports.LoginSecret, error) {
	names, models := database.RoleNames(record.ID, record.Name), record.RoleModel.Logins()
	made := make([]ports.LoginSecret, len(models))
	for i, login := range models {
		password, salt := d.plane.Entropy.Base62(credential.PasswordLength), d.plane.Entropy.Salt()
		made[i] = ports.LoginSecret{DatabaseID: record.ID, Login: login, Username: names.Of(login), Generation: 1}
		var err error
		if made[i].Sealed, err = d.plane.Secrets.Seal([]byte(password), made[i].Context()); err != nil {
			return nil, err
		}
		computing.Go(func() { made[i].Verifier = credential.Verifier(password, salt, credential.Iterations) })
	}
	return made, nil
}

// reserve commits the intent: record, logins, key and operation in one transaction. If the key was used before, it returns the
// database that was created with it.
func (d *Databases) reserve(
	ctx context.Context, c access.Caller, r CreateRequest, draft draft,
) (o operation.Operation, known id.DatabaseID, err error) {
	err = d.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record := draft.record
		if r.Key != "" {
			if known, err = d.claimKey(ctx, tx, c, r, record); err != nil || known != "" {
				return err
			}
		}
		if record.ServerID, err = d.place(ctx, tx, c, record); err != nil {
			return err
		}
		if err := tx.Databases().Add(ctx, record); err != nil {
			return err
		}
		if err := d.autoEnroll(ctx, tx, record); err != nil {
			return err
		}
		o = d.plane.Work.Own(record, KindCreate, nil, c.Origin())
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		draft.verified.Wait()
		for _, l := range draft.logins {
			if err := tx.Logins().Add(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
	return o, known, err
}

func (d *Databases) claimKey(
	ctx context.Context, tx ports.Tx, c access.Caller, r CreateRequest, record database.Record,
) (known id.DatabaseID, err error) {
	stored, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
		AccountID: c.Account.ID, Route: createRoute, Key: r.Key, Fingerprint: r.fingerprint(),
		ResourceID: string(record.ID), CreatedAt: record.CreatedAt,
	})
	if err != nil || fresh {
		return "", err
	}
	return id.DatabaseID(stored.ResourceID), stored.Replay(r.fingerprint(), fault.DatabaseStateConflict)
}

// place decides whether the account may have one more database and which server takes it.
func (d *Databases) place(ctx context.Context, tx ports.Tx, c access.Caller, record database.Record) (id.ServerID, error) {
	account, err := tx.Accounts().LockForQuota(ctx, c.Account.ID)
	if err != nil {
		return "", err
	}
	existing, err := tx.Databases().Count(ctx, account.ID)
	if err != nil {
		return "", err
	}
	if err := account.AdmitDatabase(existing); err != nil {
		return "", err
	}
	server, err := tx.Servers().Pick(ctx, ports.Placement{Now: record.CreatedAt, Connections: record.ReservedConnections()})
	return server.ID, plane.NotFound(err, fault.New(fault.AgentError, "no database server has room for another database"))
}

// autoEnroll admits a new database to every limited-rollout route, if the operator has set that for the account.
func (d *Databases) autoEnroll(ctx context.Context, tx ports.Tx, record database.Record) error {
	auto, err := tx.Switches().AutoEnroll(ctx, record.AccountID)
	if err != nil || !auto {
		return err
	}
	for _, route := range rollout.Routes() {
		if err := tx.Switches().Enroll(ctx, record.ID, route); err != nil {
			return err
		}
	}
	return nil
}

// createError is the caller's error for a creation that did not finish within the request.
func createError(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.AgentError, "the database server has not confirmed the database; creation goes on in the "+
		"background: repeat the request with the same Idempotency-Key, or read the database's status")
}

// awaitPoll is how often a repeated request checks whether the first one is done.
const awaitPoll = 50 * time.Millisecond

// awaitCreated waits until the database is no longer being created, at most Config.CreateWait.
func (d *Databases) awaitCreated(ctx context.Context, c access.Caller, db id.DatabaseID) (Created, error) {
	ctx, cancel := context.WithTimeout(ctx, d.plane.CreateWait)
	defer cancel()
	tick := time.NewTicker(awaitPoll)
	defer tick.Stop()
	for {
		created, owner, err := d.reveal(ctx, c, db)
		switch {
		case err != nil:
			return Created{}, err
		case created.Record.Status != database.Creating:
			return d.withoutStalePassword(ctx, c, created, owner), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Created{}, createError(ctx.Err())
		}
	}
}

// withoutStalePassword takes the password out of the answer to a repeated request when the owner has set another one on the
// server. A server that cannot be asked is taken to have the password: the first answer had it too.
func (d *Databases) withoutStalePassword(ctx context.Context, by access.Caller, c Created, owner ports.LoginSecret) Created {
	if c.Password == "" {
		return c
	}
	ctx, cancel := d.plane.Patient(ctx)
	defer cancel()
	release, err := d.plane.Calls.Enter(ctx, by.Account.ID, c.Record.ServerID)
	if err != nil {
		return c
	}
	defer release()
	agent, err := d.plane.AgentOf(ctx, c.Record.ServerID)
	if err != nil {
		return c
	}
	question := command.InspectLogin{DatabaseID: c.Record.ID, Username: c.Username, Verifier: owner.Verifier}
	login, err := ports.Ask(ctx, agent, question)
	if err == nil && login.Condition == command.LoginDrifted {
		c.Password, c.ConnectionString = "", ""
	}
	return c
}

// reveal returns the database with the password from its creation, unless the owner's password has changed since.
func (d *Databases) reveal(
	ctx context.Context, c access.Caller, db id.DatabaseID,
) (created Created, owner ports.LoginSecret, err error) {
	failed := false
	err = d.plane.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if created.Record, _, err = tx.Databases().Reach(ctx, c.Viewer(), db); err != nil {
			return err
		}
		if failed, err = notMade(ctx, tx, created.Record); err != nil {
			return err
		}
		owner, err = tx.Logins().Get(ctx, db, database.OwnerLogin)
		return err
	})
	switch {
	case err != nil:
		return Created{}, owner, plane.NotFound(err,
			fault.New(fault.AgentError, "the database could not be made; nothing is left of it"))
	case failed:
		return Created{}, owner, fault.New(fault.AgentError, "the database could not be made; what is left of it is being removed")
	}
	created.Username = owner.Username
	if owner.Generation != 1 {
		return created, owner, nil
	}
	password, err := d.plane.Secrets.Open(owner.Sealed, owner.Context())
	if err != nil {
		return Created{}, owner, err
	}
	created.Password = string(password)
	created.ConnectionString = created.Record.ConnectionString(owner.Username, created.Password)
	return created, owner, nil
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
func auditCreated(r database.Record) audit.Details {
	return audit.Details{"name": r.Name, "roleModel": string(r.RoleModel), "scheduledBackup": string(r.Schedule)}
}
