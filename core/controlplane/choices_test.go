package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// Whoever calls the use cases is told which field is wrong, and nothing is done.
func TestAWrongChoiceIsToldByItsField(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "shop")
	preview := w.opened(ci, ofRef("main")).Preview.DatabaseID
	of, ofPreview := w.reached(w.made("shop").Record.ID), must(w.Previews.Reach(w.ctx, ci, preview))(t)
	create := func(change func(*databases.CreateRequest)) error {
		r := request("other")
		change(&r)
		return errOf(w.Databases.Create(w.ctx, w.caller, r))
	}
	open := func(r previews.Request) error {
		r.Ref = "other"
		return errOf(w.Previews.Open(w.ctx, ci, r))
	}
	for _, c := range []struct {
		field string
		err   error
	}{
		{"roleModel", create(func(r *databases.CreateRequest) { r.RoleModel = new(database.RoleModel("")) })},
		{"scheduledBackup", create(func(r *databases.CreateRequest) { r.Schedule = new(database.Schedule("hourly")) })},
		{"postgresVersion", create(func(r *databases.CreateRequest) { r.PostgresVersion = new(15) })},
		{"environment", create(func(r *databases.CreateRequest) { r.Environment = new(database.Environment("moon")) })},
		{"environment", w.Databases.SetEnvironment(w.ctx, of, new(database.Environment("")))},
		{"action", errOf(w.Databases.SetLifecycle(w.ctx, of, database.Delete))},
		{"scheduledBackup", w.Backups.SetSchedule(w.ctx, of, "")},
		{"cidr", errOf(w.Allowlist.Add(w.ctx, of, "192.0.2.1/24", ""))},
		{"description", errOf(w.Allowlist.Add(w.ctx, of, office, "a\tb"))},
		{"role", errOf(w.Members.Add(w.ctx, of, "bob@example.org", "owner"))},
		{"role", errOf(w.Members.SetRole(w.ctx, of, "m", "owner"))},
		{"profile", errOf(w.QueryTimeouts.Set(w.ctx, of, "not_configured", "k"))},
		{"ttlHours", open(previews.Request{TTLHours: new(0)})},
		{"scheduledBackup", open(previews.Request{ScheduledBackup: new(database.Schedule(""))})},
		{"scheduledBackup", errOf(w.Previews.SetSchedule(w.ctx, ofPreview, "hourly"))},
	} {
		refusedOn(t, c.field, c.err, c.field)
	}
	refused(t, errOf(clone.Request{Name: "copy", DisplayName: "A copy", Filename: new(backup.Filename(""))}.Check()),
		fault.InvalidBackupFilename)
	equal(t, "databases", w.databases(), 2)
}
