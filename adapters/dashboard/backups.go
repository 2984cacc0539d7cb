package dashboard

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func (s *site) backupPages() []web.Page {
	const (
		list = "/databases/{id}" + backupsTab
		one  = list + "/{filename}"
	)
	return []web.Page{
		web.Get("backups", list, s.showBackups, "listBackups"),
		web.Post("backup.start", list, list, s.startBackup, "startBackup").Of(ratelimit.Create).Says("The backup is queued."),
		web.Post("backup.schedule", list+"-schedule", list, s.setSchedule, "setBackupPolicy").Says("The schedule was changed."),
		web.Get("backup", one, s.showBackup),
		web.Get("backup.download", one+"/download", s.downloadBackup, "downloadBackup"),
		web.Get("backup.certificate", one+"/certificate", s.downloadCertificate, "getBackupCertificate", "listCertificateKeys"),
		web.Post("backup.delete", one+"/delete", one, s.deleteBackup, "deleteBackup").Says("The backup is deleted."),
	}
}

func (s *site) showBackups(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	all, _, err := s.use.Backups.List(r.Context(), d, ports.Page{})
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Backups, the newest first",
		Columns: []web.Column{
			{Title: "Made", Sort: "made"}, {Title: "By", Sort: "by"}, {Title: "Size", Number: true, Sort: "size"},
			{Title: "Verified", Sort: "verified"},
			{Title: "Kept until", Sort: "until"},
		},
		Empty: &web.Empty{
			Text: "No backup yet. Start one here, or with the command-line client:", Command: "svc backups create " + d.Record().Name,
		},
	}
	for _, b := range all {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{At: &b.CreatedAt, Href: under(d.Record().ID, "backups", string(b.Filename)), Key: b.CreatedAt.UnixNano()},
			web.Words(plain(b.Trigger)), {Text: web.Bytes(b.SizeBytes), Key: b.SizeBytes}, verifiedCell(b), web.Time(b.ExpiresAt),
		}})
	}
	v := frame(d, backupsTab, "Backups")
	section := &web.Section{
		ID: "backups", Note: "Of the last 30 days, those with a backup that is kept:", Chart: backupStrip(all, r.Now),
		Table: t.Arrange(r),
	}
	if may(d, account.ManageBackups) {
		section.Forms = []*web.Form{
			button("backup.start", under(d.Record().ID, "backups"), "Start a backup"),
			{
				Name: "backup.schedule", Action: under(d.Record().ID, "backups-schedule"), Submit: "Change", Fold: "Change the schedule",
				Fields: []*web.Field{{
					Name: "scheduledBackup", Label: "Backups", Type: "select", Value: string(d.Record().Schedule), Options: schedules(),
				}},
			},
		}
	}
	v.Sections = []*web.Section{section}
	return v, nil
}

func verifiedCell(b backup.Backup) web.Cell {
	switch {
	case b.DamagedAt != nil:
		cell := web.Time(b.DamagedAt)
		cell.Mark = &web.Mark{Text: "damaged", Tone: web.Bad}
		return cell
	case b.VerifiedAt == nil:
		return web.Cell{Mark: &web.Mark{Text: "not yet", Tone: web.Neutral}}
	}
	cell := web.Time(b.VerifiedAt)
	cell.Mark = &web.Mark{Text: "verified", Tone: web.Good}
	return cell
}

// backupOf is a backup of the database of a page.
func (s *site) backupOf(r *web.Request) (d access.Reached, b backup.Backup, err error) {
	name, err := filename(r)
	if err != nil {
		return d, b, err
	}
	if d, err = s.reach(r, account.See); err != nil {
		return d, b, err
	}
	all, _, err := s.use.Backups.List(r.Context(), d, ports.Page{})
	if err != nil {
		return d, b, err
	}
	for _, b := range all {
		if b.Filename == name {
			return d, b, nil
		}
	}
	return d, b, base.ErrBackupNotFound()
}

// filename is the name of the backup of a page. BACKUP_NOT_FOUND for what is no name.
func filename(r *web.Request) (backup.Filename, error) {
	name, err := backup.ParseFilename(r.Param("filename"))
	if err != nil {
		return "", base.ErrBackupNotFound()
	}
	return name, nil
}

func (s *site) showBackup(r *web.Request) (web.Answer, error) {
	d, b, err := s.backupOf(r)
	if err != nil {
		return nil, err
	}
	at := under(d.Record().ID, "backups", string(b.Filename))
	v := within(d, backupsTab, string(b.Filename))
	section := &web.Section{ID: "backup", Facts: []web.Fact{
		{Name: "Made", Cell: web.Time(&b.CreatedAt)},
		{Name: "By", Cell: web.Words(plain(b.Trigger))},
		{Name: "Size", Cell: web.Words(web.Bytes(b.SizeBytes))},
		{Name: "Verified", Cell: verifiedCell(b)},
		{Name: "Kept until", Cell: web.Time(b.ExpiresAt)},
		{Name: "SHA-256", Cell: web.MonoText(b.ChecksumSHA256)},
	}, Links: []web.Link{{Text: "Download", Href: at + "/download"}}}
	if b.VerifiedAt != nil {
		section.Links = append(section.Links, web.Link{Text: "Certificate that it can be restored", Href: at + "/certificate"})
	}
	v.Sections = []*web.Section{section}
	if f := s.restoreForm(r, d, b); f != nil {
		section.Forms = append(section.Forms, f)
	}
	if f := s.cloneForm(r, d, &b.Filename); f != nil {
		section.Forms = append(section.Forms, f)
	}
	if may(d, account.ManageBackups) {
		section.Forms = append(section.Forms, &web.Form{
			Name: "backup.delete", Action: at + "/delete", Submit: "Delete the backup", Danger: true, Fold: "Delete the backup",
			Intro: "Its file is removed for good.", Fields: []*web.Field{web.Typed(string(b.Filename))},
		})
	}
	return v, nil
}

func (s *site) startBackup(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.ManageBackups)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Backups.Start(r.Context(), d)
	return to(r, backupsTab), err
}

func (s *site) setSchedule(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.ManageBackups)
	if err != nil {
		return nil, err
	}
	return to(r, backupsTab), s.use.Backups.SetSchedule(r.Context(), d, database.Schedule(r.Field("scheduledBackup")))
}

func (s *site) downloadBackup(r *web.Request) (web.Answer, error) {
	name, err := filename(r)
	if err != nil {
		return nil, err
	}
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	opened, err := s.use.Backups.Open(r.Lasting(), d, name, backup.Beginning{})
	if err != nil {
		return nil, err
	}
	return download(opened.Backup, opened.File), nil
}

// download sends a backup file whole.
func download(b backup.Backup, file ports.File) web.Answer {
	return web.Download{Filename: string(b.Filename), ContentType: "application/gzip", Size: file.Size, Body: file.Body}
}

func (s *site) downloadCertificate(r *web.Request) (web.Answer, error) {
	name, err := filename(r)
	if err != nil {
		return nil, err
	}
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	issued, err := s.use.Certificates.Issue(r.Context(), d, name)
	if err != nil {
		return nil, err
	}
	return certificateFile(string(name), issued)
}

func (s *site) deleteBackup(r *web.Request) (web.Answer, error) {
	name, err := filename(r)
	if err != nil {
		return nil, err
	}
	d, err := s.reach(r, account.ManageBackups)
	if err == nil {
		err = r.Confirm(string(name))
	}
	if err != nil {
		return nil, err
	}
	return to(r, backupsTab), s.use.Backups.Delete(r.Context(), d, name)
}

// certificateFile is a certificate as the API has it, with what verifies it.
func certificateFile(of string, made certificates.Issued) (web.Answer, error) {
	text, err := json.Marshal(map[string]any{"keyId": made.KeyID, "document": made.Document, "signature": made.Signature})
	if err != nil {
		made.Done()
		return nil, err
	}
	return web.Download{
		Filename: of + ".certificate.json", ContentType: "application/json", Size: int64(len(text)),
		Body: held{bytes.NewReader(text), made.Done},
	}, nil
}

// held is a text whose end gives something back.
type held struct {
	io.Reader
	done func()
}

// Close implements io.Closer.
func (h held) Close() error {
	h.done()
	return nil
}
