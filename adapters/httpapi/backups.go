package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewBackup(b backup.Backup) wire.Backup {
	return wire.Backup{
		Filename: b.Filename, OperationID: b.OperationID, Trigger: b.Trigger, Format: b.Format, SizeBytes: b.SizeBytes,
		ChecksumSHA256: b.ChecksumSHA256, CreatedAt: instant(b.CreatedAt), VerifiedAt: instantOrNull(b.VerifiedAt),
		ExpiresAt: instantOrNull(b.ExpiresAt), RoleManifest: b.RoleManifest,
	}
}

type backupRoutes struct{ use *backups.Backups }

func (b backupRoutes) routes() []Route {
	const (
		list = databasesPath + "/{id}/backups"
		one  = list + "/{filename}"
	)
	return []Route{
		{
			Name: "listBackups", Summary: "List the backups of a database, newest first",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Target: Database, Action: account.See,
			List: WholeList, Handle: paged((*Request).database, b.use.List, viewBackup),
			Answers: documented(http.StatusOK, wire.Page[wire.Backup]{}),
		},
		{
			Name: "startBackup", Summary: "Start a backup",
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Target: Database, Action: account.ManageBackups,
			Handle:   b.start,
			Answers:  documented(http.StatusAccepted, wire.OperationWithMessage{}),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.BackupStorageFull, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "downloadBackup", Summary: "Download a backup",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: b.download,
			Answers:  backupFile(),
			Refusals: []fault.Code{fault.BackupNotFound, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy},
		},
		{
			Name: "setBackupPolicy", Summary: "Choose whether the service makes daily backups of a database",
			Method: http.MethodPatch, Path: databasesPath + "/{id}/backup-policy", Class: ratelimit.Write, Target: Database,
			Action: account.ManageBackups, Body: JSON[wire.SetBackupPolicy](), Handle: b.setPolicy,
			Answers: documented(http.StatusOK, wire.DataWithMessage[wire.BackupPolicy]{}),
		},
		{
			Name: "deleteBackup", Summary: "Delete a backup permanently",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Database, Action: account.ManageBackups,
			Handle:  b.delete,
			Answers: documented(http.StatusNoContent, nil),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	}
}

func (b backupRoutes) start(r *Request) (Answer, error) {
	work, err := b.use.Start(r.Context(), r.database())
	return Accepted(wire.OperationWithMessage{Message: "The backup is queued.", Operation: viewOperation(work)}), err
}

// download streams the file as the agent sends it. Before that it may wait for a slot, as long as its client does.
func (b backupRoutes) download(r *Request) (Answer, error) {
	filename := backup.Filename(r.Param(filenameParameter))
	return answerWhoStays(r, func() (backups.Download, error) {
		return b.use.Open(r.Context(), r.database(), filename, r.beginning())
	}, func(d backups.Download) (Answer, error) { return backupOf(d.Backup, d.File), nil })
}

// backupFile are the answers with a backup.
func backupFile() []Documented {
	return []Documented{
		{Status: http.StatusOK, ContentType: gzipType, Meaning: "The file; its ETag is its SHA-256"},
		{Status: http.StatusPartialContent, ContentType: gzipType, Meaning: "The file from the byte on that Range names"},
	}
}

func (b backupRoutes) setPolicy(r *Request) (Answer, error) {
	schedule := Decoded[wire.SetBackupPolicy](r).ScheduledBackup
	err := b.use.SetSchedule(r.Context(), r.database(), schedule)
	view := wire.BackupPolicy{ID: r.database().Record().ID, ScheduledBackup: schedule}
	return OK(wire.DataWithMessage[wire.BackupPolicy]{Message: "The backup policy was changed.", Data: view}), err
}

func (b backupRoutes) delete(r *Request) (Answer, error) {
	return NoContent(), b.use.Delete(r.Context(), r.database(), backup.Filename(r.Param(filenameParameter)))
}
