package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// direct implements spec.API on the use cases, without HTTP.
type direct struct {
	cp  *controlplane.ControlPlane
	key string
}

// caller is whom the key stands for.
func (d direct) caller(c ratelimit.Class) (controlplane.Caller, error) {
	admission, err := d.cp.Access.Admit(context.Background(), controlplane.Knock{
		Key: d.key, Class: c, Client: netip.MustParseAddr("192.0.2.1"), RequestID: "direct",
	})
	return admission.Caller, err
}

// reach finds a database, and hands it to the use case. Every error becomes what a client is told.
func reach[T any](
	d direct, c ratelimit.Class, db string, a account.Action, use func(context.Context, controlplane.Reached) (T, error),
	gates ...rollout.Gate,
) (out T, err error) {
	ctx := context.Background()
	caller, err := d.caller(c)
	if err != nil {
		return out, told(err)
	}
	found, err := d.cp.Access.Reach(ctx, caller, id.DatabaseID(db), a, gates...)
	if err != nil {
		return out, told(err)
	}
	out, err = use(ctx, found)
	return out, told(err)
}

// told is the error as a client hears of it.
func told(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	r := &spec.Refusal{Code: string(f.Code), Message: f.Message, RetryAfter: f.RetryAfter}
	for _, d := range f.Details {
		r.Fields = append(r.Fields, d.Field)
	}
	if extra, err := json.Marshal(f.Extra); err != nil || json.Unmarshal(extra, &r.Hints) != nil {
		return fmt.Errorf("%w, with what no client can read: %v", r, f.Extra)
	}
	return r
}

// page reads the cursor that an earlier page ended with.
func page(p spec.Page) (out ports.Page, err error) {
	out.Limit = p.Limit
	if p.Cursor != "" {
		out.After, err = ports.ParseCursor(p.Cursor)
	}
	return out, err
}

// Databases implements spec.DatabaseAPI.
func (d direct) Databases(p spec.Page) (spec.Listed[spec.Database], error) {
	return listAll(d, p, d.cp.Databases.List, showDatabase)
}

// CreateDatabase implements spec.DatabaseAPI.
func (d direct) CreateDatabase(n spec.NewDatabase) (c spec.Created, err error) {
	caller, err := d.caller(ratelimit.Create)
	if err != nil {
		return c, told(err)
	}
	request, err := createRequest(n)
	if err != nil {
		return c, told(err)
	}
	made, err := d.cp.Databases.Create(context.Background(), caller, request)
	if err != nil {
		return c, told(err)
	}
	return spec.Created{
		Database: showDatabase(made.Record), Password: made.Password, ConnectionString: made.ConnectionString,
	}, nil
}

func createRequest(n spec.NewDatabase) (r controlplane.CreateRequest, err error) {
	r = controlplane.CreateRequest{Name: n.Name, DisplayName: n.DisplayName, Key: idempotency.Key(n.IdempotencyKey)}
	if n.RoleModel != "" {
		r.RoleModel, err = database.ParseRoleModel(n.RoleModel)
	}
	if n.Environment != "" && err == nil {
		r.Environment, err = database.ParseEnvironment(n.Environment)
	}
	if n.ScheduledBackup != "" && err == nil {
		r.Schedule, err = database.ParseSchedule(n.ScheduledBackup)
	}
	return r, err
}

// Database implements spec.DatabaseAPI.
func (d direct) Database(db string) (spec.Database, error) {
	return reach(d, ratelimit.Read, db, account.See, func(ctx context.Context, r controlplane.Reached) (spec.Database, error) {
		record, err := d.cp.Databases.Get(ctx, r)
		return showDatabase(record), err
	})
}

// SetEnvironment implements spec.DatabaseAPI.
func (d direct) SetEnvironment(db string, label *string) (*string, error) {
	return reach(d, ratelimit.Write, db, account.Configure, func(ctx context.Context, r controlplane.Reached) (*string, error) {
		var e database.Environment
		if label != nil {
			var err error
			if e, err = database.ParseEnvironment(*label); err != nil {
				return nil, err
			}
		}
		return label, d.cp.Databases.SetEnvironment(ctx, r, e)
	})
}

// SetLifecycle implements spec.DatabaseAPI.
func (d direct) SetLifecycle(db, action string) (string, error) {
	return reach(d, ratelimit.Write, db, account.Configure, func(ctx context.Context, r controlplane.Reached) (string, error) {
		event, err := database.ParseLifecycle(action)
		if err != nil {
			return "", err
		}
		status, err := d.cp.Databases.SetLifecycle(ctx, r, event)
		return string(status), err
	})
}

// Allowlist implements spec.AllowlistAPI.
func (d direct) Allowlist(db string) ([]spec.Entry, error) {
	return reach(d, ratelimit.Read, db, account.See, func(ctx context.Context, r controlplane.Reached) ([]spec.Entry, error) {
		entries, err := d.cp.Allowlist.List(ctx, r)
		return shown(entries, showEntry), err
	})
}

// AddToAllowlist implements spec.AllowlistAPI.
func (d direct) AddToAllowlist(db, cidr, description string) (spec.Entry, error) {
	return reach(d, ratelimit.Write, db, account.Configure, func(ctx context.Context, r controlplane.Reached) (spec.Entry, error) {
		network, err := database.ParseCIDR(cidr)
		if err != nil {
			return spec.Entry{}, err
		}
		if description, err = database.ValidateDescription(description); err != nil {
			return spec.Entry{}, err
		}
		entry, err := d.cp.Allowlist.Add(ctx, r, network, description)
		return showEntry(entry), err
	})
}

// RemoveFromAllowlist implements spec.AllowlistAPI.
func (d direct) RemoveFromAllowlist(db, entry string) error {
	return nothing(d, ratelimit.Write, db, account.Configure, func(ctx context.Context, r controlplane.Reached) error {
		return d.cp.Allowlist.Remove(ctx, r, id.AllowlistEntryID(entry))
	})
}

func nothing(
	d direct, c ratelimit.Class, db string, a account.Action, use func(context.Context, controlplane.Reached) error,
) error {
	_, err := reach(d, c, db, a, func(ctx context.Context, r controlplane.Reached) (struct{}, error) {
		return struct{}{}, use(ctx, r)
	})
	return err
}

// Backups implements spec.BackupAPI.
func (d direct) Backups(db string, p spec.Page) (spec.Listed[spec.Backup], error) {
	return list(d, db, p, d.cp.Backups.List, showBackup)
}

// StartBackup implements spec.BackupAPI.
func (d direct) StartBackup(db string) (spec.Operation, error) {
	return reach(d, ratelimit.Create, db, account.ManageBackups,
		func(ctx context.Context, r controlplane.Reached) (spec.Operation, error) {
			work, err := d.cp.Backups.Start(ctx, r)
			return showOperation(work), err
		})
}

// DownloadBackup implements spec.BackupAPI.
func (d direct) DownloadBackup(db, filename string) ([]byte, error) {
	return reach(d, ratelimit.Read, db, account.See, func(ctx context.Context, r controlplane.Reached) ([]byte, error) {
		found, err := d.cp.Backups.Open(ctx, r, backup.Filename(filename))
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(found.File.Body)
		return content, errors.Join(err, found.File.Body.Close())
	})
}

// DeleteBackup implements spec.BackupAPI.
func (d direct) DeleteBackup(db, filename string) error {
	return nothing(d, ratelimit.Write, db, account.ManageBackups, func(ctx context.Context, r controlplane.Reached) error {
		return d.cp.Backups.Delete(ctx, r, backup.Filename(filename))
	})
}

// Operations implements spec.OperationAPI.
func (d direct) Operations(db string, p spec.Page) (spec.Listed[spec.Operation], error) {
	return list(d, db, p, d.cp.Operations.List, showOperation)
}

// Operation implements spec.OperationAPI.
func (d direct) Operation(op string) (spec.Operation, error) {
	found, err := d.reachOperation(ratelimit.Read, op)
	return showOperation(found.Operation()), told(err)
}

// CancelOperation implements spec.OperationAPI.
func (d direct) CancelOperation(op string) (spec.Operation, error) {
	found, err := d.reachOperation(ratelimit.Write, op)
	if err != nil {
		return spec.Operation{}, told(err)
	}
	work, err := d.cp.Operations.Cancel(context.Background(), found)
	return showOperation(work), told(err)
}

func (d direct) reachOperation(c ratelimit.Class, op string) (controlplane.ReachedOperation, error) {
	caller, err := d.caller(c)
	if err != nil {
		return controlplane.ReachedOperation{}, err
	}
	return d.cp.Access.ReachOperation(context.Background(), caller, id.OperationID(op), account.See)
}

// Activity implements spec.API.
func (d direct) Activity(db string, p spec.Page) (spec.Listed[spec.Activity], error) {
	return list(d, db, p, d.cp.Activity.List, showActivity)
}
