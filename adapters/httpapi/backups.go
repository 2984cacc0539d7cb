package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewBackup(b backup.Backup) wire.Backup {
	return wire.Backup{
		Filename: b.Filename, OperationID: b.OperationID, Trigger: b.Trigger, Format: b.Format, SizeBytes: b.SizeBytes,
		ChecksumSHA256: b.ChecksumSHA256, CreatedAt: instant(b.CreatedAt), VerifiedAt: instantOrNull(b.VerifiedAt),
		DamagedAt: instantOrNull(b.DamagedAt), ExpiresAt: instantOrNull(b.ExpiresAt), RoleManifest: b.RoleManifest,
	}
}

type backupRoutes struct{ use *backups.Backups }

func (b backupRoutes) routes() []serve.Route {
	const (
		list = databasesPath + "/{id}/backups"
		one  = list + "/{filename}"
	)
	return []serve.Route{
		{
			Name: "listBackups", Summary: "List the backups of a database, newest first",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Target: Database, Action: account.See,
			Work: serve.Paged(serve.WholeList, databaseOf, b.use.List, viewBackup),
		},
		{
			Name: "startBackup", Summary: "Start a backup",
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Target: Database, Action: account.ManageBackups,
			Work:     queued("The backup is queued.", b.start),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.BackupStorageFull, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "downloadBackup", Summary: "Download a backup",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Database, Action: account.See,
			Work: sendsBackup(b.download),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupStorageUnavailable, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "setBackupPolicy", Summary: "Choose whether the service makes daily backups of a database",
			Method: http.MethodPatch, Path: databasesPath + "/{id}/backup-policy", Class: ratelimit.Write, Target: Database,
			Action: account.ManageBackups, Body: serve.JSON[wire.SetBackupPolicy](), Work: serve.OK(b.setPolicy),
		},
		{
			Name: "deleteBackup", Summary: "Delete a backup permanently",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Database, Action: account.ManageBackups,
			Work: serve.Empty(b.delete),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupConflict, fault.BackupStorageUnavailable, fault.AgentError,
				fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	}
}

func (b backupRoutes) start(r *serve.Request) (operation.Operation, error) {
	return b.use.Start(r.Context(), databaseOf(r))
}

func (b backupRoutes) download(r *serve.Request) (backups.Download, error) {
	return b.use.Open(r.Context(), databaseOf(r), filenameOf(r), r.Beginning())
}

// sendsBackup is work that streams a backup file, or the rest of one, as the agent sends it. Opening the file may wait for a
// slot, as long as the client does.
func sendsBackup(open func(*serve.Request) (backups.Download, error)) serve.Work {
	return serve.Work{
		Answers: []serve.Documented{
			{Status: http.StatusOK, ContentType: serve.Gzip, Meaning: "The file; its ETag is its SHA-256"},
			{Status: http.StatusPartialContent, ContentType: serve.Gzip, Meaning: "The file from the byte on that Range names"},
		},
		Handle: serve.WhileClientStays(open, func(d backups.Download) (serve.Answer, error) {
			b := d.Backup
			return serve.Answer{Status: http.StatusOK, Download: &serve.Download{
				Filename: string(b.Filename), ContentType: serve.Gzip, Tag: b.ChecksumSHA256, Size: b.SizeBytes,
				From: b.SizeBytes - d.File.Size, Content: d.File.Body,
			}}, nil
		}),
	}
}

func (b backupRoutes) setPolicy(r *serve.Request) (wire.DataWithMessage[wire.BackupPolicy], error) {
	schedule := serve.Decoded[wire.SetBackupPolicy](r).ScheduledBackup
	err := b.use.SetSchedule(r.Context(), databaseOf(r), schedule)
	view := wire.BackupPolicy{ID: databaseOf(r).Record().ID, ScheduledBackup: schedule}
	return wire.DataWithMessage[wire.BackupPolicy]{Message: "The backup policy was changed.", Data: view}, err
}

func (b backupRoutes) delete(r *serve.Request) error {
	return b.use.Delete(r.Context(), databaseOf(r), filenameOf(r))
}
