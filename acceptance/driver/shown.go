package driver

import (
	"context"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// list reads a list of one database.
func list[E, V any](
	d direct, db string, p spec.Page,
	read func(context.Context, controlplane.Reached, ports.Page) ([]E, *ports.Position, error), show func(E) V,
) (spec.Listed[V], error) {
	return reach(d, ratelimit.Read, db, account.See, func(ctx context.Context, r controlplane.Reached) (spec.Listed[V], error) {
		at, err := page(p)
		if err != nil {
			return spec.Listed[V]{}, err
		}
		entries, next, err := read(ctx, r, at)
		return listed(entries, next, show), err
	})
}

// listAll reads a page of what the caller has.
func listAll[E, V any](
	d direct, p spec.Page, read func(context.Context, controlplane.Caller, ports.Page) ([]E, *ports.Position, error), show func(E) V,
) (l spec.Listed[V], err error) {
	caller, err := d.caller(ratelimit.Read)
	if err != nil {
		return l, told(err)
	}
	at, err := page(p)
	if err != nil {
		return l, told(err)
	}
	entries, next, err := read(context.Background(), caller, at)
	return listed(entries, next, show), told(err)
}

func listed[E, V any](entries []E, next *ports.Position, show func(E) V) spec.Listed[V] {
	l := spec.Listed[V]{Data: shown(entries, show)}
	if next != nil {
		cursor := next.Cursor()
		l.NextCursor = &cursor
	}
	return l
}

func shown[E, V any](entries []E, show func(E) V) []V {
	out := make([]V, len(entries))
	for i, e := range entries {
		out[i] = show(e)
	}
	return out
}

func showDatabase(r database.Record) spec.Database {
	d := spec.Database{
		ID: string(r.ID), Name: r.Name, DisplayName: r.DisplayName, Host: r.Host, Port: r.Port, Database: r.Name, Username: r.Name,
		Status: string(r.Status), SizeBytes: r.SizeBytes, CreatedAt: r.CreatedAt,
	}
	if r.Environment != "" {
		d.Environment = spec.Text(string(r.Environment))
	}
	return d
}

func showEntry(e database.AllowlistEntry) spec.Entry {
	return spec.Entry{ID: string(e.ID), CIDR: e.CIDR, Description: e.Description, CreatedAt: e.CreatedAt}
}

func showBackup(b backup.Backup) spec.Backup {
	return spec.Backup{
		Filename: string(b.Filename), OperationID: string(b.OperationID), Trigger: string(b.Trigger), Format: b.Format,
		SizeBytes: b.SizeBytes, ChecksumSHA256: b.ChecksumSHA256, CreatedAt: b.CreatedAt, VerifiedAt: b.VerifiedAt,
		ExpiresAt: b.ExpiresAt, RoleManifest: b.RoleManifest,
	}
}

func showOperation(o operation.Operation) spec.Operation {
	s := spec.Operation{
		ID: string(o.ID), Type: string(o.Kind), Status: string(o.Status), Stage: o.Stage, Progress: o.Progress, Result: o.Result,
		DatabaseID: string(o.DatabaseID), CreatedAt: o.CreatedAt, StartedAt: o.StartedAt, FinishedAt: o.FinishedAt,
	}
	if f := o.Failure(); f != nil {
		s.Error = &spec.Failure{Code: string(f.Code), Message: f.Message}
	}
	return s
}

func showActivity(e audit.Entry) spec.Activity {
	return spec.Activity{ID: string(e.ID), At: e.At, Actor: string(e.Actor), Action: string(e.Action), Details: e.Details}
}
