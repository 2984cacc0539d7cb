package httpapi

import (
	"net/http"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

type deletionRoutes struct{ use *deletion.Deletion }

const deletionBackupPath = databasesPath + "/{id}/deletion-backup"

func (x deletionRoutes) routes() []serve.Route {
	const one = databasesPath + "/{id}"
	return []serve.Route{
		{
			Name: "listDeletedDatabases", Summary: "List the deleted databases of the account, the one deleted last first",
			Method: http.MethodGet, Path: databasesPath + "/deleted", Class: ratelimit.Read, Key: serve.FullAccount,
			Work:     x.list(),
			Refusals: []fault.Code{fault.FeatureNotAvailable},
		},
		{
			Name: "deleteDatabase", Summary: "Delete a database, which can be recovered for a while",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Key: serve.FullAccount,
			Target: Database, Action: account.Own, Gate: rollout.Delete, Work: queued("The database is being deleted.", x.delete),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.PreviewConflict},
		},
		{
			Name: "downloadDeletionBackup", Summary: "Download the backup that was made when a database was deleted",
			Method: http.MethodGet, Path: deletionBackupPath, Class: ratelimit.Read, Key: serve.FullAccount,
			Target: BuriedBackup, Action: account.Own, Gate: rollout.DeletedDatabases, Work: sendsBackup(x.download),
			Refusals: []fault.Code{fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy},
		},
		{
			Name: "recoverDatabase", Summary: "Recover a deleted database; repeated requests get the same operation",
			Method: http.MethodPost, Path: one + "/recover", Class: ratelimit.Write, Key: serve.FullAccount,
			Target: Recoverable, Action: account.Own, Gate: rollout.Recover, Repeatable: true,
			Work:     queued("The database is being recovered.", x.recover),
			Refusals: []fault.Code{fault.PlanLimit, fault.DatabaseStateConflict, fault.PreviewConflict, fault.AgentError},
		},
	}
}

// list refuses callers for whom there is no such list, before it reads which page they want.
func (x deletionRoutes) list() serve.Work {
	return serve.PagedOf(serve.LongList, func(r *serve.Request) (deletion.Listing, error) {
		return x.use.Reveal(r.Context(), r.Caller)
	}, x.use.List, viewDeleted)
}

func viewDeleted(s deletion.Shown) wire.DeletedDatabase {
	v := wire.DeletedDatabase{
		ID: s.Database.ID, Name: s.Database.Name, DisplayName: s.Database.DisplayName,
		DeletedAt: instant(s.Tombstone.DeletedAt), PurgeAfter: instant(s.Tombstone.PurgeAfter), RecoveryStatus: s.Status,
	}
	if b := s.Backup; b != nil {
		v.DeletionBackup = &wire.DeletionBackup{
			FileName: b.Filename, Format: b.Format, SizeBytes: b.SizeBytes, ChecksumSHA256: b.ChecksumSHA256,
			VerifiedAt: instantOrNull(b.VerifiedAt),
		}
		if s.Downloadable {
			path := strings.Replace(deletionBackupPath, "{id}", string(s.Database.ID), 1)
			v.DeletionBackup.DownloadURL = &path
		}
	}
	return v
}

func (x deletionRoutes) delete(r *serve.Request) (operation.Operation, error) {
	return x.use.Delete(r.Context(), databaseOf(r))
}

func (x deletionRoutes) download(r *serve.Request) (backups.Download, error) {
	d, err := x.use.OpenBackup(r.Context(), databaseOf(r), r.Beginning())
	return backups.Download(d), err
}

func (x deletionRoutes) recover(r *serve.Request) (operation.Operation, error) {
	return x.use.Recover(r.Context(), r.Target.(deletion.Recoverable))
}
