package dashboard

import (
	"fmt"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/rollout"
)

func (s *site) settingPages() []web.Page {
	const one = "/databases/{id}"
	return []web.Page{
		web.Get("settings", one+settingsTab, s.showSettings),
		web.Post("database.environment", one+"/environment", one+settingsTab, s.setEnvironment, "setDatabaseEnvironment").
			Says("The environment was changed."),
		web.Post("database.lifecycle", one+"/lifecycle", one+settingsTab, s.setLifecycle, "setDatabaseLifecycle").
			Says("It is done, or about to be."),
		web.Post("database.confirm", one+"/confirm-upgrade", one, s.confirmUpgrade, "confirmUpgrade").
			Says("The upgrade is confirmed."),
	}
}

func (s *site) showSettings(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	record := d.Record()
	lifecycle := func(action database.Event, submit string) *web.Form {
		return button("database.lifecycle", under(record.ID, "lifecycle"), submit, web.Pair{Name: "action", Value: string(action)})
	}
	open := &web.Section{ID: "lifecycle", Title: "Open and closed"}
	switch record.Status {
	case database.Active:
		open.Note = "Stopping it ends every connection, and lets nobody in until it is started. Backups go on."
		open.Forms = []*web.Form{lifecycle(database.Restart, "Restart"), lifecycle(database.Stop, "Stop")}
	case database.Stopped:
		open.Note = "Nobody can connect until it is started."
		open.Forms = []*web.Form{lifecycle(database.Start, "Start")}
	default:
		open.Note = "Something is being done to it: " + plain(record.Status) + "."
	}
	v := frame(d, settingsTab, "Settings")
	v.Sections = []*web.Section{open, {ID: "environment", Title: "Environment", Forms: []*web.Form{{
		Name: "database.environment", Action: under(record.ID, "environment"), Submit: "Change",
		Fields: []*web.Field{{
			Name: "environment", Label: "Environment", Type: "select", Value: string(record.Environment), Optional: true,
			Options: options(database.Production.Values(), "none"), Help: "A label. It changes nothing else.",
		}},
	}}}}
	if f := s.cloneForm(r, d, nil); f != nil {
		v.Sections = append(v.Sections, &web.Section{Title: "Clone", Forms: []*web.Form{f}})
	}
	if may(d, account.Own) && s.open(r, rollout.Delete) {
		v.Sections = append(v.Sections, &web.Section{Title: "Delete", Forms: []*web.Form{{
			Name: "database.delete", Action: under(record.ID,
				"delete"), Submit: "Delete the database", Danger: true, Fold: "Delete the database",
			Intro:  "Every connection ends, and a last backup is made. It can be recovered for some days; then it is gone for good.",
			Fields: []*web.Field{web.Typed(record.Name)},
		}}})
	}
	return v, nil
}

// upgradeSection says that the way back to an older PostgreSQL is open; nil: none is.
func upgradeSection(d access.Reached) *web.Section {
	record := d.Record()
	if record.WayBack == 0 {
		return nil
	}
	section := &web.Section{ID: "upgrade", Title: "Upgrade of PostgreSQL", Note: fmt.Sprintf(
		"It came from PostgreSQL %d to %d. Until the upgrade is confirmed, the people who run the service can take it back, with all "+
			"that was written since.", record.WayBack, record.PostgresVersion)}
	if may(d, account.Own) {
		section.Forms = []*web.Form{{
			Name: "database.confirm", Action: under(record.ID, "confirm-upgrade"), Submit: "Confirm the upgrade",
			Intro: "It works with the new version, and there is no way back from then on.",
		}}
	}
	return section
}

func (s *site) confirmUpgrade(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Moves.ConfirmUpgrade(r.Context(), d)
	return to(r, overviewTab), err
}

func (s *site) setEnvironment(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	return to(r, settingsTab), s.use.Databases.SetEnvironment(r.Context(), d, chosen[database.Environment](r, "environment"))
}

func (s *site) setLifecycle(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Databases.SetLifecycle(r.Context(), d, database.Event(r.Field("action")))
	return to(r, settingsTab), err
}
