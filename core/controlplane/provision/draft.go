// Package provision holds what every new database begins with: its record, its logins with their passwords, and
// its place in the account's quota and on a server.
package provision

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Draft is everything about a new database that must be stored before its server is called.
type Draft struct {
	Record database.Record

	key      backup.Key
	logins   []ports.LoginSecret
	verified *sync.WaitGroup // wait for it before using the logins: it computes their verifiers
}

// Making describes a database that is to be made.
type Making struct {
	// Record has its names, role model and labels; see New.
	Record database.Record
	// Claim returns the database that an earlier request for the same has begun to make; empty where this one is the first. It
	// runs in the transaction that stores the draft, and may name it. Nil: every request is the first.
	Claim func(ctx context.Context, tx ports.Tx, d *Draft) (known id.DatabaseID, err error)
	// On is the one server that may have it, as an operator has named it; empty: the one that the rule chooses.
	On id.ServerID
	// Ordered says which operator has it made; empty: none.
	Ordered operation.Ordered
	// Lasting lets a repeated request have the password for as long as it is the one of the creation; else see ShownAgain.
	Lasting bool
	// Also stores what needs the record; nil: nothing.
	Also func(ctx context.Context, tx ports.Tx, r database.Record) error
}

// Copied is a database that begins with what another one held at a moment. Operation, of that one, makes it, and is empty once
// that is over. Fresh is true for the request that stored it.
type Copied struct {
	Made      Made
	Operation operation.Operation
	Fresh     bool
}

// New completes the record of a database that is to be made: the caller says its names, role model and labels, and the version of
// PostgreSQL where it must be a certain one. It generates the passwords of its logins.
func New(p *base.Base, owner account.Account, r database.Record) (Draft, error) {
	r.ID, r.AccountID, r.CreatedAt = base.NewID[id.DatabaseID](p.Entropy), owner.ID, p.Clock.Now()
	r.Status, r.Settings, r.OverlayStatus = database.Creating, database.NoSettings(), database.NoOverlay
	r.Plan, r.DatabaseBytes = owner.Plan, owner.DatabaseBytes
	r.PostgresVersion = cmp.Or(r.PostgresVersion, owner.NewPostgres(p.DefaultPostgres))
	if r.RoleModel == database.Managed {
		r.ConnectionCap = owner.Quotas().ConnectionCap
	}
	r.NextBackupAt, r.NextReadingAt = backup.Next(r.ID, r.Schedule, r.CreatedAt), backup.NextReading(r.ID, r.CreatedAt)
	d := Draft{Record: r, verified: new(sync.WaitGroup)}
	seed := p.Entropy.Seed()
	d.key.DatabaseID = r.ID
	var err error
	if d.key.Sealed, err = p.Secrets.Seal(seed[:], d.key.SecretContext()); err != nil {
		return d, err
	}
	return d, d.makeLogins(p, func(database.Login) int64 { return 1 })
}

// makeLogins generates the passwords. Each verifier takes a millisecond to compute, so they are computed in parallel,
// concurrently with the first statements that store the draft.
func (d *Draft) makeLogins(p *base.Base, generation func(database.Login) int64) error {
	names, models := database.RoleNames(d.Record.ID, d.Record.Name), d.Record.RoleModel.Logins()
	d.logins = make([]ports.LoginSecret, len(models))
	for i, login := range models {
		password, verifier := makePassword(p)
		made := &d.logins[i]
		*made = ports.LoginSecret{
			DatabaseID: d.Record.ID, Login: login, Username: names.Of(login), Generation: generation(login),
		}
		var err error
		if made.Sealed, err = p.Secrets.Seal([]byte(password), made.Context()); err != nil {
			return err
		}
		d.verified.Go(func() { made.Verifier = verifier() })
	}
	return nil
}

// makePassword generates a password, and says how to compute its verifier.
func makePassword(p *base.Base) (password string, verifier func() string) {
	password, salt := p.Entropy.Base62(credential.PasswordLength), p.Entropy.Salt()
	return password, func() string { return credential.Verifier(password, salt, credential.Iterations) }
}

// Name sets the name of a database where only the transaction that stores it knows the name.
func (d *Draft) Name(name string) {
	d.Record.Name = name
	names := database.RoleNames(d.Record.ID, name)
	for i := range d.logins {
		d.logins[i].Username = names.Of(d.logins[i].Login)
	}
}

// Place decides whether the account may have one more database, and which server takes it; on, where it is not empty, is the
// only one that may. ACCOUNT_SUSPENDED. PLAN_LIMIT: no more databases. VALIDATION_ERROR on "postgresVersion": servers have
// others. AGENT_ERROR: there is no room.
func (d *Draft) Place(ctx context.Context, tx ports.Tx, on id.ServerID) error {
	if on == "" {
		return d.PlaceNear(ctx, tx, "")
	}
	if err := d.admit(ctx, tx); err != nil {
		return err
	}
	room, err := tx.Servers().Room(ctx, on, "")
	if err == nil && room.Refuses(d.Record.ReservedConnections(), d.Record.PostgresVersion) != "" {
		err = errNoRoom()
	}
	d.Record.ServerID = on
	return err
}

// PlaceNear is Place for a database that may be on any server, and best is on that one.
func (d *Draft) PlaceNear(ctx context.Context, tx ports.Tx, near id.ServerID) error {
	if err := d.admit(ctx, tx); err != nil {
		return err
	}
	rooms, err := tx.Servers().Rooms(ctx, "")
	if err != nil {
		return err
	}
	version := d.Record.PostgresVersion
	picked, some := server.Pick(rooms, server.Needs{
		Now: d.Record.CreatedAt, Connections: d.Record.ReservedConnections(), Postgres: version, Near: near,
	})
	switch there := server.Versions(rooms); {
	case some:
		d.Record.ServerID = picked.ID
		return nil
	case len(there) > 0 && !slices.Contains(there, version):
		return pgversion.ErrNowhere(version, there)
	}
	return errNoRoom()
}

func errNoRoom() error {
	return fault.New(fault.AgentError, "no database server has room for another database")
}

// PlaceOn is Place on a server that an operator has named. VALIDATION_ERROR on "server" says why it does not take the database,
// or that its agent is away.
func (d *Draft) PlaceOn(ctx context.Context, tx ports.Tx, named id.ServerID) error {
	if err := d.admit(ctx, tx); err != nil {
		return err
	}
	room, err := tx.Servers().Room(ctx, named, "")
	if err != nil {
		return base.NotFound(err, fault.Invalid("server", "there is no such server"))
	}
	if why := cmp.Or(room.Refuses(d.Record.ReservedConnections(), d.Record.PostgresVersion), room.Away()); why != "" {
		return fault.Invalid("server", "%s", why)
	}
	d.Record.ServerID = named
	return nil
}

// admit decides whether the account may have one more database, and holds its quota until the transaction ends.
func (d *Draft) admit(ctx context.Context, tx ports.Tx) error {
	owner, err := tx.Accounts().LockForQuota(ctx, d.Record.AccountID)
	if err != nil {
		return err
	}
	if err := owner.Served(); err != nil {
		return err
	}
	existing, err := tx.Databases().Count(ctx, owner.ID)
	if err != nil {
		return err
	}
	if err := owner.AdmitDatabase(existing); err != nil {
		return err
	}
	deleted, err := tx.Deletions().Count(ctx, owner.ID, d.Record.IsPreview())
	if err != nil {
		return err
	}
	return owner.AdmitBeside(deleted)
}

// Store stores record and logins, and enrolls the database for every limited-rollout route, if the operator has set that for the
// account. also stores what needs the record; the verifiers are computed meanwhile. VALIDATION_ERROR on "name": the server has
// another database of it, or sends on who comes for one: those would be turned away, and by nobody who may decide that.
func (d *Draft) Store(ctx context.Context, tx ports.Tx, also func() error) error {
	return d.store(ctx, tx, func() error {
		sentOn, err := tx.Forwards().Named(ctx, d.Record.ServerID, d.Record.Name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sentOn, func(f move.Forward) bool { return !f.Over(d.Record.CreatedAt) }) {
			return database.ErrNameTaken()
		}
		return also()
	})
}

func (d *Draft) store(ctx context.Context, tx ports.Tx, also func() error) error {
	if err := tx.Databases().Add(ctx, d.Record); err != nil {
		return err
	}
	if err := tx.BackupKeys().Add(ctx, d.key); err != nil {
		return err
	}
	if err := d.enroll(ctx, tx); err != nil {
		return err
	}
	if err := also(); err != nil {
		return err
	}
	d.verified.Wait()
	for _, l := range d.logins {
		if err := tx.Logins().Add(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (d *Draft) enroll(ctx context.Context, tx ports.Tx) error {
	auto, err := tx.Switches().AutoEnroll(ctx, d.Record.AccountID)
	if err != nil || !auto {
		return err
	}
	for _, route := range rollout.Routes() {
		if err := tx.Switches().Enroll(ctx, d.Record.ID, route); err != nil {
			return err
		}
	}
	return nil
}

// Spec reads back what was stored before the agent was first called for a database.
func Spec(ctx context.Context, p *base.Base, r database.Record) (command.EnsureDatabase, error) {
	spec := command.EnsureDatabase{
		DatabaseID: r.ID, AccountID: r.AccountID, Name: r.Name, RoleModel: r.RoleModel, ConnectionCap: r.ConnectionCap,
	}
	var key backup.Key
	logins, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (list []ports.LoginSecret, err error) {
		if key, err = tx.BackupKeys().Get(ctx, r.ID); err != nil {
			return nil, err
		}
		return tx.Logins().List(ctx, r.ID)
	})
	if err != nil {
		return spec, err
	}
	if spec.BackupKey, err = p.Secrets.Open(key.Sealed, key.SecretContext()); err != nil {
		return spec, err
	}
	for _, l := range logins {
		password, err := p.Secrets.Open(l.Sealed, l.Context())
		if err != nil {
			return spec, err
		}
		spec.Logins = append(spec.Logins, command.Login{
			Login: l.Login, Username: l.Username, Verifier: l.Verifier, Password: string(password),
		})
	}
	return spec, nil
}
