package operator

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// A switch that is set already is left unchanged, and nothing is logged.

// SetAutoEnroll makes every new database of an account enrolled for every limited-rollout route. VALIDATION_ERROR on "account".
func (o *Operator) SetAutoEnroll(ctx context.Context, accountID id.AccountID, on bool) error {
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if is, err := tx.Switches().AutoEnroll(ctx, accountID); err != nil || is == on {
			return err
		}
		if err := tx.Switches().SetAutoEnroll(ctx, accountID, on); err != nil {
			return notFound(err, "account")
		}
		return o.record(ctx, tx, accountID, audit.AccountAutoEnroll, audit.Details{"on": strconv.FormatBool(on)})
	})
}

// Enroll admits one database to one limited-rollout route, or to all of them (rollout.All). VALIDATION_ERROR on "route" or
// "database".
func (o *Operator) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return o.setEnrolled(ctx, db, route, true)
}

// Unenroll withdraws what Enroll granted. Errors as for Enroll.
func (o *Operator) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	return o.setEnrolled(ctx, db, route, false)
}

// ActivateLegacyRoles lets a database with a single login, and with it its account, have additional roles. VALIDATION_ERROR on
// "database".
func (o *Operator) ActivateLegacyRoles(ctx context.Context, db id.DatabaseID) error {
	return o.enrol(ctx, db, []string{rollout.LegacyEnrolment}, true, audit.LegacyActivated)
}

// DeactivateLegacyRoles withdraws what ActivateLegacyRoles granted. Existing roles stay as they are, and the API neither shows
// nor changes them. Errors as for ActivateLegacyRoles.
func (o *Operator) DeactivateLegacyRoles(ctx context.Context, db id.DatabaseID) error {
	return o.enrol(ctx, db, []string{rollout.LegacyEnrolment}, false, audit.LegacyDeactivated)
}

func (o *Operator) setEnrolled(ctx context.Context, db id.DatabaseID, route string, on bool) error {
	routes, err := rollout.ParseRoute(route)
	if err != nil {
		return err
	}
	what := audit.Enrolled
	if !on {
		what = audit.Unenrolled
	}
	return o.enrol(ctx, db, routes, on, what)
}

func (o *Operator) enrol(ctx context.Context, db id.DatabaseID, routes []string, on bool, what audit.Action) error {
	err := o.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if what == audit.LegacyActivated && locked.RoleModel != database.SingleLogin {
			return fault.Invalid("database", "has managed SQL roles, and needs no activation for additional ones")
		}
		granted, err := tx.Switches().Grants(ctx, db)
		if err != nil {
			return err
		}
		set := tx.Switches().Enroll
		if !on {
			set = tx.Switches().Unenroll
		}
		var changed []string
		for _, r := range routes {
			if slices.Contains(granted.Enrolments, r) == on {
				continue
			}
			if err := set(ctx, db, r); err != nil {
				return err
			}
			changed = append(changed, r)
		}
		if len(changed) == 0 {
			return nil
		}
		return o.base.Audit(ctx, tx, locked, audit.Operator, what, audit.Details{"routes": strings.Join(changed, " ")})
	})
	return notFound(err, "database")
}

// SetFeature turns a feature on or off for the whole installation. VALIDATION_ERROR on "feature".
func (o *Operator) SetFeature(ctx context.Context, name string, on bool) error {
	if err := rollout.CheckFeature(name); err != nil {
		return err
	}
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		granted, err := tx.Switches().Grants(ctx, "")
		if err != nil || slices.Contains(granted.Features, name) == on {
			return err
		}
		if err := tx.Switches().SetFeature(ctx, name, on); err != nil {
			return err
		}
		what := audit.FeatureEnabled
		if !on {
			what = audit.FeatureDisabled
		}
		return o.record(ctx, tx, "", what, audit.Details{"feature": name})
	})
}

// SetMaintenance opens or ends the maintenance window: the API then answers MAINTENANCE to every valid key.
func (o *Operator) SetMaintenance(ctx context.Context, on bool) error {
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if is, err := tx.Switches().Maintenance(ctx); err != nil || is == on {
			return err
		}
		if err := tx.Switches().SetMaintenance(ctx, on); err != nil {
			return err
		}
		what := audit.MaintenanceBegun
		if !on {
			what = audit.MaintenanceEnded
		}
		return o.record(ctx, tx, "", what, nil)
	})
}
