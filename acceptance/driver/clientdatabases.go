package driver

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// ctx is for calls that the client itself bounds.
var ctx = context.Background()

// Databases implements spec.DatabaseAPI.
func (c client) Databases(p spec.Page) (spec.Listed[spec.Database], error) {
	return shown[spec.Listed[spec.Database]](c.api.Databases.List(ctx, apiclient.Page(p)))
}

// CreateDatabase implements spec.DatabaseAPI.
func (c client) CreateDatabase(n spec.NewDatabase) (spec.Created, error) {
	return shown[spec.Created](c.api.Databases.Create(ctx, wire.CreateDatabase{
		Name: n.Name, DisplayName: n.DisplayName, RoleModel: optional[database.RoleModel](n.RoleModel),
		Environment: optional[database.Environment](n.Environment), ScheduledBackup: optional[database.Schedule](n.ScheduledBackup),
	}, apiclient.IdempotencyKey(n.IdempotencyKey)))
}

// Database implements spec.DatabaseAPI.
func (c client) Database(of string) (spec.Database, error) {
	return shown[spec.Database](c.api.Databases.Get(ctx, id.DatabaseID(of)))
}

// SetEnvironment implements spec.DatabaseAPI.
func (c client) SetEnvironment(of string, label *string) (*string, error) {
	body := wire.SetEnvironment{Environment: (*database.Environment)(label)}
	change, err := c.api.Databases.SetEnvironment(ctx, id.DatabaseID(of), body)
	return (*string)(change.Environment), refused(err)
}

// SetLifecycle implements spec.DatabaseAPI.
func (c client) SetLifecycle(of, action string) (string, error) {
	change, err := c.api.Databases.SetLifecycle(ctx, id.DatabaseID(of), wire.SetLifecycle{Action: database.Event(action)})
	return string(change.Status), refused(err)
}

// Allowlist implements spec.AllowlistAPI.
func (c client) Allowlist(of string) ([]spec.Entry, error) {
	return shown[[]spec.Entry](c.api.Allowlist.List(ctx, id.DatabaseID(of)))
}

// AddToAllowlist implements spec.AllowlistAPI.
func (c client) AddToAllowlist(of, cidr, description string) (spec.Entry, error) {
	body := wire.AddAllowlistEntry{CIDR: cidr, Description: optional[string](description)}
	return shown[spec.Entry](c.api.Allowlist.Add(ctx, id.DatabaseID(of), body))
}

// RemoveFromAllowlist implements spec.AllowlistAPI.
func (c client) RemoveFromAllowlist(of, entry string) error {
	return refused(c.api.Allowlist.Remove(ctx, id.DatabaseID(of), id.AllowlistEntryID(entry)))
}

// Backups implements spec.BackupAPI.
func (c client) Backups(of string, p spec.Page) (spec.Listed[spec.Backup], error) {
	return shown[spec.Listed[spec.Backup]](c.api.Backups.List(ctx, id.DatabaseID(of), apiclient.Page(p)))
}

// StartBackup implements spec.BackupAPI.
func (c client) StartBackup(of string) (spec.Operation, error) {
	started, err := c.api.Backups.Start(ctx, id.DatabaseID(of))
	return shown[spec.Operation](started.Operation, err)
}

// DownloadBackup implements spec.BackupAPI.
func (c client) DownloadBackup(of, filename string) ([]byte, error) {
	file, err := c.api.Backups.Download(ctx, id.DatabaseID(of), backup.Filename(filename))
	if err != nil {
		return nil, refused(err)
	}
	content, err := io.ReadAll(file)
	return content, errors.Join(err, file.Close())
}

// DeleteBackup implements spec.BackupAPI.
func (c client) DeleteBackup(of, filename string) error {
	return refused(c.api.Backups.Delete(ctx, id.DatabaseID(of), backup.Filename(filename)))
}

// Operations implements spec.OperationAPI.
func (c client) Operations(of string, p spec.Page) (spec.Listed[spec.Operation], error) {
	return shown[spec.Listed[spec.Operation]](c.api.Operations.List(ctx, id.DatabaseID(of), apiclient.Page(p)))
}

// Operation implements spec.OperationAPI.
func (c client) Operation(operation string) (spec.Operation, error) {
	return shown[spec.Operation](c.api.Operations.Get(ctx, id.OperationID(operation)))
}

// CancelOperation implements spec.OperationAPI.
func (c client) CancelOperation(operation string) (spec.Operation, error) {
	canceled, err := c.api.Operations.Cancel(ctx, id.OperationID(operation))
	return shown[spec.Operation](canceled.Operation, err)
}

// Activity implements spec.API.
func (c client) Activity(of string, p spec.Page) (spec.Listed[spec.Activity], error) {
	return shown[spec.Listed[spec.Activity]](c.api.Activity.List(ctx, id.DatabaseID(of), apiclient.Page(p)))
}
