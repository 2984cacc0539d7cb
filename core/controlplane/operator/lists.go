package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Accounts lists accounts by creation time; a limit of 0 lists all. The part of an address may be in whatever case.
func (o *Operator) Accounts(ctx context.Context, of ports.AccountFilter, p ports.Page) ([]ports.AccountEntry, error) {
	of.Email = ascii.Lower(of.Email)
	return entries(ctx, o, p, func(ctx context.Context, d ports.Directory, p ports.Page) ([]ports.AccountEntry, error) {
		return d.Accounts(ctx, of, p)
	}, func(e ports.AccountEntry) ports.Position { return ports.Position{At: e.CreatedAt, ID: string(e.ID)} })
}

// Databases lists databases, also deleted ones, by creation time; a limit of 0 lists all.
func (o *Operator) Databases(ctx context.Context, of ports.DatabaseFilter, p ports.Page) ([]ports.DatabaseEntry, error) {
	return entries(ctx, o, p, func(ctx context.Context, d ports.Directory, p ports.Page) ([]ports.DatabaseEntry, error) {
		return d.Databases(ctx, of, p)
	}, func(e ports.DatabaseEntry) ports.Position { return ports.Position{At: e.CreatedAt, ID: string(e.ID)} })
}

// Backups lists the backups of all databases, the newest first; a limit of 0 lists all.
func (o *Operator) Backups(ctx context.Context, of ports.BackupFilter, p ports.Page) ([]ports.BackupEntry, error) {
	return entries(ctx, o, p, func(ctx context.Context, d ports.Directory, p ports.Page) ([]ports.BackupEntry, error) {
		list, err := d.Backups(ctx, of, p)
		for i, one := range list {
			list[i].ExpiresAt = one.Ends(o.base.Clock.Now())
		}
		return list, err
	}, func(e ports.BackupEntry) ports.Position {
		return ports.Position{At: e.CreatedAt, ID: string(e.OperationID)}
	})
}

// AllNamespaces lists the CI namespaces of one account or of all, also revoked ones, by creation time.
func (o *Operator) AllNamespaces(ctx context.Context, of ports.NamespaceFilter) ([]ports.NamespaceEntry, error) {
	return entries(ctx, o, ports.Page{}, func(ctx context.Context, d ports.Directory, p ports.Page) ([]ports.NamespaceEntry, error) {
		return d.Namespaces(ctx, of, p)
	}, func(e ports.NamespaceEntry) ports.Position { return ports.Position{At: e.CreatedAt, ID: string(e.ID)} })
}

// Usage lists what the databases of an account, or of all, came to in a month, also those that are gone, by account.
func (o *Operator) Usage(ctx context.Context, of ports.UsageFilter) ([]ports.UsageEntry, error) {
	list, err := entries(ctx, o, ports.Page{}, func(
		ctx context.Context, d ports.Directory, p ports.Page,
	) ([]ports.UsageEntry, error) {
		return d.Usage(ctx, of, p)
	}, func(e ports.UsageEntry) ports.Position { return ports.Position{At: e.Month, ID: string(e.DatabaseID)} })
	slices.SortFunc(list, func(a, b ports.UsageEntry) int {
		return cmp.Or(cmp.Compare(a.Email, b.Email), cmp.Compare(a.Name, b.Name), cmp.Compare(a.DatabaseID, b.DatabaseID))
	})
	return list, err
}

// pageLength bounds one statement of a list: the fewer there are, the less often what is listed is sorted.
const pageLength = 10_000

// entries reads a list of the directory page by page.
func entries[T any](
	ctx context.Context, o *Operator, wanted ports.Page, list func(context.Context, ports.Directory, ports.Page) ([]T, error),
	position func(T) ports.Position,
) ([]T, error) {
	return paged(wanted, pageLength, position, func(p ports.Page) ([]T, error) {
		return fromDirectory(ctx, o, func(ctx context.Context, d ports.Directory) ([]T, error) { return list(ctx, d, p) })
	})
}

// paged reads a wanted page in pages of at most length entries; a limit of 0 is none.
func paged[T any](
	wanted ports.Page, length int, position func(T) ports.Position, page func(ports.Page) ([]T, error),
) (list []T, err error) {
	err = inPages(wanted, length, position, page, func(found []T) error {
		list = append(list, found...)
		return nil
	})
	return list, err
}

// inPages reads a wanted page in pages of at most so many entries, and calls visit with each. A wanted limit of 0 is none. An
// error of visit ends it.
func inPages[T any](
	wanted ports.Page, length int, position func(T) ports.Position, page func(ports.Page) ([]T, error), visit func([]T) error,
) error {
	for seen, p := 0, wanted; ; {
		if p.Limit = length; wanted.Limit > 0 {
			p.Limit = min(length, wanted.Limit-seen)
		}
		found, err := page(p)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := visit(found); err != nil {
			return err
		}
		if seen += len(found); len(found) < p.Limit || seen == wanted.Limit {
			return nil
		}
		last := position(found[len(found)-1])
		p.After = &last
	}
}

// AccountDetails is an account with what it has.
type AccountDetails struct {
	ports.AccountEntry
	AutoEnroll bool                   // new databases are enrolled for every route
	Owned      []ports.DatabaseEntry  // also those that are deleted
	KeyList    []base.By[account.Key] // CI keys, too
	Namespaces []ports.NamespaceEntry
}

// Account returns one account. VALIDATION_ERROR on "account".
func (o *Operator) Account(ctx context.Context, of id.AccountID) (a ports.AccountEntry, err error) {
	found, err := o.Accounts(ctx, ports.AccountFilter{ID: of}, ports.Page{Limit: 1})
	switch {
	case err != nil:
		return a, err
	case len(found) == 0:
		return a, errUnknown("account")
	}
	return found[0], nil
}

// AccountDetails returns an account with what it has, and of its databases a page. Errors as of Account.
func (o *Operator) AccountDetails(ctx context.Context, of id.AccountID, owned ports.Page) (a AccountDetails, err error) {
	if a.AccountEntry, err = o.Account(ctx, of); err != nil {
		return a, err
	}
	if a.Owned, err = o.Databases(ctx, ports.DatabaseFilter{AccountID: of}, owned); err != nil {
		return a, err
	}
	if a.KeyList, err = o.Keys(ctx, of); err != nil {
		return a, err
	}
	if a.Namespaces, err = o.AllNamespaces(ctx, ports.NamespaceFilter{AccountID: of}); err != nil {
		return a, err
	}
	a.AutoEnroll, err = ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Switches().AutoEnroll(ctx, of)
	})
	return a, err
}

// DatabaseDetails is a database with what there is of it.
type DatabaseDetails struct {
	ports.DatabaseEntry
	Account      account.Account
	Open         *operation.Operation // nil where none is open
	Backups      int
	LastBackup   *backup.Backup
	LastVerified *backup.Backup // the newest that was ever verified
	Logins       []string       // the names of those that were made with it
	Roles        map[string]int // by status
	Members      int
	Allowlist    int                     // entries
	Deleted      *deletion.Scene         // nil where it is not deleted
	Recovery     deletion.RecoveryStatus // of a deleted one
}

// DatabaseDetails returns a database with what there is of it, also a deleted one, without any secret. VALIDATION_ERROR on
// "database".
func (o *Operator) DatabaseDetails(ctx context.Context, of id.DatabaseID) (d DatabaseDetails, err error) {
	found, err := o.Databases(ctx, ports.DatabaseFilter{ID: of}, ports.Page{Limit: 1})
	if err == nil && len(found) == 0 {
		err = errUnknown("database")
	}
	if err != nil {
		return d, err
	}
	d.DatabaseEntry = found[0]
	err = o.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if d.Account, err = tx.Accounts().Get(ctx, d.AccountID); err != nil {
			return err
		}
		if d.Open, err = optional(tx.Operations().Open(ctx, of)); err != nil {
			return err
		}
		if d.Record.Status.Gone() {
			if d.Deleted, err = optional(tx.Deletions().Get(ctx, of)); err != nil {
				return err
			}
			if d.Deleted != nil {
				d.Recovery = d.Deleted.RecoveryStatus(o.base.Clock.Now())
			}
		}
		if err := d.count(ctx, tx); err != nil {
			return err
		}
		list, err := tx.Backups().List(ctx, of, ports.Page{})
		d.sum(list)
		return err
	})
	return d, err
}

// count fills in the logins, roles, members and allowlist entries.
func (d *DatabaseDetails) count(ctx context.Context, tx ports.Tx) error {
	logins, err := tx.Logins().List(ctx, d.ID)
	if err != nil {
		return err
	}
	for _, l := range logins {
		d.Logins = append(d.Logins, l.Username)
	}
	roles, err := tx.Roles().List(ctx, d.ID)
	if err != nil {
		return err
	}
	d.Roles = map[string]int{}
	for _, r := range roles {
		d.Roles[string(r.Status)]++
	}
	people, err := tx.Members().List(ctx, d.ID)
	if err != nil {
		return err
	}
	entries, err := tx.Allowlist().List(ctx, d.ID)
	d.Members, d.Allowlist = len(people), len(entries)
	return err
}

// sum fills in the backups, of which the newest comes first.
func (d *DatabaseDetails) sum(list []backup.Backup) {
	if d.Backups = len(list); d.Backups == 0 {
		return
	}
	d.LastBackup = &list[0]
	if at := slices.IndexFunc(list, func(b backup.Backup) bool { return b.VerifiedAt != nil }); at >= 0 {
		d.LastVerified = &list[at]
	}
}

// optional is nil for what is not there.
func optional[T any](v T, err error) (*T, error) {
	if errors.Is(err, ports.ErrNoRow) {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	return &v, err
}

// logLength bounds how far back the log is searched for the last change of a switch.
const logLength = 1000

// Feature is a feature of the installation.
type Feature struct {
	Name      string
	Enabled   bool
	Enrolled  map[string]int // the databases that are enrolled, by route; none where everybody has the feature that is on
	ChangedAt *time.Time     // nil where the log does not say
}

// FeatureList lists all features, by name.
func (o *Operator) FeatureList(ctx context.Context) (list []Feature, err error) {
	grants, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (rollout.Grants, error) {
		return tx.Switches().Grants(ctx, "")
	})
	if err != nil {
		return nil, err
	}
	enrolled, err := fromDirectory(ctx, o, func(ctx context.Context, d ports.Directory) (map[string]int, error) {
		return d.Enrolled(ctx)
	})
	if err != nil {
		return nil, err
	}
	log, err := o.switchLog(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(slices.Values(rollout.Features())) {
		f := Feature{Name: name, Enabled: slices.Contains(grants.Features, name), Enrolled: map[string]int{}}
		for _, r := range rollout.Rules {
			if r.Feature == name && r.Enrolment != "" {
				f.Enrolled[r.Enrolment] = enrolled[r.Enrolment]
			}
		}
		f.ChangedAt = lastOf(log, func(e audit.Entry) bool { return e.Details["feature"] == name })
		list = append(list, f)
	}
	return list, nil
}

// Maintenance reports whether the maintenance window is open, and since when it is so, where the log says that.
func (o *Operator) Maintenance(ctx context.Context) (on bool, since *time.Time, err error) {
	on, err = ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Switches().Maintenance(ctx)
	})
	if err != nil {
		return on, nil, err
	}
	log, err := o.switchLog(ctx)
	return on, lastOf(log, func(e audit.Entry) bool { return strings.HasPrefix(string(e.Action), "maintenance.") }), err
}

// switchLog is the end of the installation's log, the newest entry first.
func (o *Operator) switchLog(ctx context.Context) ([]audit.Entry, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]audit.Entry, error) {
		return tx.Audit().OfInstallation(ctx, ports.Page{Limit: logLength})
	})
}

// lastOf is the time of the first matching entry of a log, of which the newest comes first.
func lastOf(log []audit.Entry, match func(audit.Entry) bool) *time.Time {
	if at := slices.IndexFunc(log, match); at >= 0 {
		return &log[at].At
	}
	return nil
}
