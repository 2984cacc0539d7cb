package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	tombstone "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

const deletedPath = "/databases/deleted"

func (s *site) deletedPages() []web.Page {
	return []web.Page{
		web.Get("deleted", deletedPath, s.showDeleted, "listDeletedDatabases"),
		web.Get("deleted.backup", "/databases/{id}/deletion-backup", s.downloadDeletionBackup, "downloadDeletionBackup"),
		web.Post("deleted.recover", "/databases/{id}/recover", deletedPath, s.recoverDatabase, "recoverDatabase").
			Says("The database is being recovered."),
		web.Post("database.delete", "/databases/{id}/delete", "/databases/{id}"+settingsTab, s.deleteDatabase, "deleteDatabase").
			Says("The database is being deleted."),
	}
}

func (s *site) showDeleted(r *web.Request) (web.Answer, error) {
	listing, err := s.use.Deletion.Reveal(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	list, next, err := s.use.Deletion.List(r.Context(), listing, page)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Deleted databases, the one deleted last first",
		Columns: []web.Column{{Title: "Name"}, {Title: "Deleted"}, {Title: "Gone for good"}, {Title: "Backup"}, {Title: ""}},
		Empty:   &web.Empty{Text: "No deleted database. What you delete can be recovered here for some days."},
	}
	v := &web.View{Title: "Deleted databases", Trail: []web.Link{{Text: "Databases", Href: "/"}}}
	for _, d := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: d.Database.DisplayName, Sub: d.Database.Name}, web.Time(&d.Tombstone.DeletedAt), web.Time(&d.Tombstone.PurgeAfter),
			deletionBackupCell(d), recoveryCell(d),
		}})
		v.Watch = append(v.Watch, d.Database.ID)
	}
	turned(t, deletedPath, page, next)
	v.Sections = []*web.Section{{ID: "deleted", Table: t}}
	return v, nil
}

func deletionBackupCell(d deletion.Shown) web.Cell {
	if d.Backup == nil {
		return web.Words("none")
	}
	if !d.Downloadable {
		return web.Words(web.Bytes(d.Backup.SizeBytes))
	}
	return web.Cell{Text: web.Bytes(d.Backup.SizeBytes), Href: under(d.Database.ID, "deletion-backup")}
}

func recoveryCell(d deletion.Shown) web.Cell {
	if d.Status != tombstone.Recoverable {
		return web.Words(plain(d.Status))
	}
	f := button("deleted.recover", under(d.Database.ID, "recover"), "Recover")
	return web.Cell{Forms: []*web.Form{f}}
}

func (s *site) downloadDeletionBackup(r *web.Request) (web.Answer, error) {
	db := id.DatabaseID(r.Param("id"))
	d, err := s.use.Deletion.ReachBackup(r.Context(), r.Caller, db, account.Own, rollout.DeletedDatabases)
	if err != nil {
		return nil, err
	}
	r.About(string(db))
	opened, err := s.use.Deletion.OpenBackup(r.Lasting(), d, backup.Beginning{})
	if err != nil {
		return nil, err
	}
	return download(opened.Backup, opened.File), nil
}

func (s *site) recoverDatabase(r *web.Request) (web.Answer, error) {
	db := id.DatabaseID(r.Param("id"))
	d, err := s.use.Deletion.Reach(r.Context(), r.Caller, db, account.Own)
	if err != nil {
		return nil, err
	}
	r.About(string(db))
	o, err := s.use.Deletion.Recover(r.Context(), d)
	return web.Redirect{To: "/operations/" + string(o.ID)}, err
}

func (s *site) deleteDatabase(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own, rollout.Delete)
	if err == nil {
		err = r.Confirm(d.Record().Name)
	}
	if err != nil {
		return nil, err
	}
	o, err := s.use.Deletion.Delete(r.Context(), d)
	return web.Redirect{To: "/operations/" + string(o.ID)}, err
}
