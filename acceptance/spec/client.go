package spec

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// ctx is for calls that the client itself bounds.
var ctx = context.Background()

// Client calls the API with one key, each time once. What is refused is an *apiclient.Error. Its own methods are the calls whose
// bodies are longer than what a scenario wants to say.
type Client struct {
	*apiclient.Client
	URL string // of the host
	// Roles are the calls about additional roles, of the model that the story is about.
	Roles RoleCalls
}

// RoleCalls are the calls that additional roles of both models have.
type RoleCalls interface {
	apiclient.RoleCalls
	Prepare(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...apiclient.Option) (wire.RoleSetup, error)
	Delete(
		ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.DeleteRole, opts ...apiclient.Option,
	) (wire.RoleRemoval, error)
}

// LegacyCalls are those about the roles of databases with a single login. Their one removal revokes, too.
type LegacyCalls struct{ apiclient.LegacyRoles }

// Prepare implements RoleCalls.
func (l LegacyCalls) Prepare(
	ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...apiclient.Option,
) (wire.RoleSetup, error) {
	prepared, err := l.LegacyRoles.Prepare(ctx, database, role, opts...)
	return prepared.RoleSetup, err
}

// Delete implements RoleCalls.
func (l LegacyCalls) Delete(
	ctx context.Context, database id.DatabaseID, role id.RoleID, _ wire.DeleteRole, opts ...apiclient.Option,
) (wire.RoleRemoval, error) {
	return l.Remove(ctx, database, role, opts...)
}

// optional is a member of a request that an empty text leaves out.
func optional[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}

// NewDatabase asks for a database. Empty fields are not sent.
type NewDatabase struct {
	Name, DisplayName string
	RoleModel         database.RoleModel
	Environment       database.Environment
	ScheduledBackup   database.Schedule
	PostgresVersion   *int // nil: not sent
	IdempotencyKey    string
}

// Created is a new database.
type Created struct {
	wire.CreatedDatabase
	Model database.RoleModel // that was asked for
}

// Login is how the owner of the database logs in.
func (c Created) Login() Login {
	return Login{Database: c.Database.Database, Username: c.Username, Password: c.Password, From: Home}
}

// path is that of a route about the database.
func (c Created) path(rest string) string { return "/api/v1/databases/" + string(c.ID) + rest }

// CreateDatabase creates a database.
func (c Client) CreateDatabase(n NewDatabase) (Created, error) {
	made, err := c.Databases.Create(ctx, wire.CreateDatabase{
		Name: n.Name, DisplayName: n.DisplayName, RoleModel: optional(n.RoleModel), Environment: optional(n.Environment),
		ScheduledBackup: optional(n.ScheduledBackup), PostgresVersion: n.PostgresVersion,
	}, apiclient.IdempotencyKey(n.IdempotencyKey))
	return Created{made, n.RoleModel}, err
}

// SetEnvironment changes the environment label; nil removes it.
func (c Client) SetEnvironment(of id.DatabaseID, label *database.Environment) (changed *database.Environment, err error) {
	change, err := c.Databases.SetEnvironment(ctx, of, wire.SetEnvironment{Environment: label})
	return change.Environment, err
}

// SetLifecycle starts, stops or restarts a database.
func (c Client) SetLifecycle(of id.DatabaseID, action database.Event) (database.Status, error) {
	change, err := c.Databases.SetLifecycle(ctx, of, wire.SetLifecycle{Action: action})
	return change.Status, err
}

// AddToAllowlist allows a network to connect.
func (c Client) AddToAllowlist(of id.DatabaseID, cidr, description string) (wire.AllowlistEntry, error) {
	return c.Allowlist.Add(ctx, of, wire.AddAllowlistEntry{CIDR: cidr, Description: optional(description)})
}

// DownloadBackup reads a whole backup file.
func (c Client) DownloadBackup(of id.DatabaseID, name backup.Filename) ([]byte, error) {
	file, err := c.Backups.Download(ctx, of, name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	return content, errors.Join(err, file.Close())
}

// CreateWebhook creates an endpoint for one database, or for all where none is named.
func (c Client) CreateWebhook(url string, of id.DatabaseID) (wire.WebhookSecret, error) {
	return c.Webhooks.Create(ctx, wire.CreateWebhook{URL: url, DatabaseID: optional(of)})
}

// NewRole asks for an additional role.
type NewRole struct {
	DisplayName, AccessProfile string
	ConnectionLimit            int
	IdempotencyKey             string
}

// Credential is a role with its password.
type Credential struct{ wire.RevealedRole }

// Login is how the role logs in.
func (c Credential) Login() Login {
	return Login{Database: c.Database, Username: c.Username, Password: c.Password, From: Home}
}

// LoginCredential is a managed login with its password.
type LoginCredential struct{ wire.RevealedLogin }

// LogIn is how the login gets in.
func (c LoginCredential) LogIn() Login {
	return Login{Database: c.Database, Username: c.Username, Password: c.Password, From: Home}
}

// RoleKind is that of a change of a role.
type RoleKind = role.Kind

// Dependency is something that keeps a role from being removed.
type Dependency = role.Dependency

// CreateRole creates a role, or goes on with its creation.
func (c Client) CreateRole(of id.DatabaseID, n NewRole) (wire.Role, error) {
	return c.Roles.Create(ctx, of, wire.CreateRole{
		DisplayName: n.DisplayName, AccessProfile: role.AccessProfile(n.AccessProfile), ConnectionLimit: n.ConnectionLimit,
	}, apiclient.IdempotencyKey(n.IdempotencyKey))
}

// RenameRole changes the display name of a role.
func (c Client) RenameRole(of id.DatabaseID, one id.RoleID, name string) (wire.RoleLabel, error) {
	return c.Client.Roles.Rename(ctx, of, one, wire.RenameRole{DisplayName: name})
}

// DeleteRole revokes a role where needed, and removes it.
func (c Client) DeleteRole(of id.DatabaseID, one id.RoleID) (wire.RoleRemoval, error) {
	return c.Roles.Delete(ctx, of, one, wire.DeleteRole{Confirm: true})
}

var disconnect = wire.Disconnect{ConfirmDisconnect: true}

// ChangeRole rotates or revokes.
func (c Client) ChangeRole(of id.DatabaseID, one id.RoleID, kind role.Kind, key string) (wire.RoleChange, error) {
	body := wire.ChangeRole{Kind: kind, ConfirmDisconnect: true}
	return c.Roles.Change(ctx, of, one, body, apiclient.IdempotencyKey(key))
}

// ReplayChange goes on with a change.
func (c Client) ReplayChange(of id.DatabaseID, one id.RoleID, change id.OperationID) (wire.RoleChange, error) {
	return c.Roles.ContinueChange(ctx, of, one, change, disconnect)
}

// RotateLogin gives a managed login a new password.
func (c Client) RotateLogin(of id.DatabaseID, login database.Login, key string) (wire.LoginRotation, error) {
	return c.Logins.Rotate(ctx, of, login, disconnect, apiclient.IdempotencyKey(key))
}
