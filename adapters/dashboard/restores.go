package dashboard

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
)

// restorePages bring back what backups hold: in the place of the database, where the spec has that, and as a new one.
func (s *site) restorePages() []web.Page {
	const one = "/databases/{id}" + backupsTab + "/{filename}"
	return []web.Page{
		web.Post("backup.restore", one+"/restore", one, s.restore, "restoreBackup").Of(ratelimit.Create).Says("The restore is queued."),
		web.Post("backup.clone", one+"/clone", one, s.cloneBackup, "cloneDatabase").Of(ratelimit.Create),
		web.Post("database.clone", "/databases/{id}/clone", "/databases/{id}"+settingsTab, s.cloneNow, "cloneDatabase").
			Of(ratelimit.Create),
	}
}

const shrinkField = "confirmShrink"

// restoreForm is nil where the database cannot be restored here. One with managed logins is restored by its API alone (spec,
// section "Managed restore").
func (s *site) restoreForm(r *web.Request, d access.Reached, b backup.Backup) *web.Form {
	if !may(d, account.Own) || d.Record().RoleModel != database.SingleLogin || !s.open(r, rollout.Restore) {
		return nil
	}
	return &web.Form{
		Name: "backup.restore", Action: under(d.Record().ID, "backups", string(b.Filename), "restore"), Submit: "Restore the database",
		Danger: true, Fold: "Restore the database from it",
		Intro: "What the database holds now is replaced by what the backup holds. Every connection ends.",
		Fields: []*web.Field{
			{Name: shrinkField, Label: "Restore also where much less comes back than there is now", Type: "check", Optional: true},
			web.Typed(d.Record().Name),
		},
	}
}

func (s *site) restore(r *web.Request) (web.Answer, error) {
	name, err := filename(r)
	if err != nil {
		return nil, err
	}
	d, err := s.reach(r, account.Own, rollout.Restore)
	if err == nil {
		err = r.Confirm(d.Record().Name)
	}
	if err != nil {
		return nil, err
	}
	_, err = s.use.Restores.Start(r.Context(), d, name, restore.Consents{ConfirmShrink: r.Field(shrinkField) == yes})
	return to(r, overviewTab), err
}

// cloneForm makes a new database of a backup, or of the database as it is now; nil where that is not open.
func (s *site) cloneForm(r *web.Request, d access.Reached, of *backup.Filename) *web.Form {
	if !may(d, account.Own) || !s.open(r, rollout.Clone) {
		return nil
	}
	form := &web.Form{
		Name: "database.clone", Action: under(d.Record().ID, "clone"), Submit: "Clone", Fold: "Clone the database",
		Intro:  "A new database begins with what this one holds now.",
		Fields: []*web.Field{nameField(), displayNameField()},
	}
	if of == nil && s.use.Moments.Days(r.Caller.Account) > 0 {
		form.Intro = "A new database begins with what this one holds now, or held at a moment."
		form.Fields = append(form.Fields, &web.Field{
			Name: recovery.Field, Label: "As it was at", Max: 40, Optional: true, Complete: "off",
			Help: "A time with its offset from UTC, as 2026-03-01T12:30:00+01:00. Empty: as it is now.",
		})
	}
	if of != nil {
		form.Name, form.Action = "backup.clone", under(d.Record().ID, "backups", string(*of), "clone")
		form.Fold, form.Intro = "Clone the backup", "A new database begins with what the backup holds."
	}
	form.Fields[0].Focus = false
	return form.Once(s.once())
}

func (s *site) cloneNow(r *web.Request) (web.Answer, error) { return s.clone(r, nil) }

func (s *site) cloneBackup(r *web.Request) (web.Answer, error) {
	name, err := filename(r)
	if err != nil {
		return nil, err
	}
	return s.clone(r, &name)
}

func (s *site) clone(r *web.Request, of *backup.Filename) (web.Answer, error) {
	d, err := s.reach(r, account.Own, rollout.Clone)
	if err != nil {
		return nil, err
	}
	q := clone.Request{
		Name: r.Field("name"), DisplayName: displayed(r), Filename: of, Key: idempotency.Key(r.Once()),
	}
	if text := strings.TrimSpace(r.Field(recovery.Field)); text != "" {
		at, err := recovery.Parse(text)
		if err != nil {
			return nil, err
		}
		q.At = &at
	}
	started, err := s.use.Clones.Start(r.Context(), d, q)
	if err != nil {
		return nil, err
	}
	v := madeView("The clone is being made", started.Clone)
	v.Sections[0].Links = append(v.Sections[0].Links,
		web.Link{Text: "Follow the operation", Href: "/operations/" + string(started.Operation.ID)})
	return v, nil
}
