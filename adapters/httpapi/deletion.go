package httpapi

import (
	"net/http"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

type deletionRoutes struct{ use *deletion.Deletion }

const deletionBackupPath = databasesPath + "/{id}/deletion-backup"

func (x deletionRoutes) routes() []Route {
	const one = databasesPath + "/{id}"
	return []Route{
		{
			Name: "listDeletedDatabases", Summary: "List the deleted databases of the account, the one deleted last first",
			Method: http.MethodGet, Path: databasesPath + "/deleted", Class: ratelimit.Read, Key: FullAccount,
			List: LongList, Handle: x.list,
			Answers:  documented(http.StatusOK, wire.Page[wire.DeletedDatabase]{}),
			Refusals: []fault.Code{fault.FeatureNotAvailable},
		},
		{
			Name: "deleteDatabase", Summary: "Delete a database, which can be recovered for a while",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Key: FullAccount,
			Target: Database, Action: account.Own, Gate: rollout.Delete, Handle: x.delete,
			Answers:  documented(http.StatusAccepted, wire.OperationWithMessage{}),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.PreviewConflict},
		},
		{
			Name: "downloadDeletionBackup", Summary: "Download the backup that was made when a database was deleted",
			Method: http.MethodGet, Path: deletionBackupPath, Class: ratelimit.Read, Key: FullAccount,
			Target: BuriedBackup, Action: account.Own, Gate: rollout.DeletedDatabases, Handle: x.download,
			Answers:  backupFile(),
			Refusals: []fault.Code{fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy},
		},
		{
			Name: "recoverDatabase", Summary: "Recover a deleted database; repeated requests get the same operation",
			Method: http.MethodPost, Path: one + "/recover", Class: ratelimit.Write, Key: FullAccount,
			Target: Recoverable, Action: account.Own, Gate: rollout.Recover, Repeatable: true, Handle: x.recover,
			Answers:  documented(http.StatusAccepted, wire.OperationWithMessage{}),
			Refusals: []fault.Code{fault.PlanLimit, fault.DatabaseStateConflict, fault.PreviewConflict, fault.AgentError},
		},
	}
}

func (x deletionRoutes) list(r *Request) (Answer, error) {
	l, err := x.use.Reveal(r.Context(), r.Caller)
	if err != nil {
		return Answer{}, err
	}
	return paged(func(*Request) deletion.Listing { return l }, x.use.List, viewDeleted)(r)
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

func (x deletionRoutes) delete(r *Request) (Answer, error) {
	o, err := x.use.Delete(r.Context(), r.database())
	return Accepted(wire.OperationWithMessage{Message: "The database is being deleted.", Operation: viewOperation(o)}), err
}

// download streams the file as downloads of backups do.
func (x deletionRoutes) download(r *Request) (Answer, error) {
	return answerWhoStays(r, func() (deletion.Download, error) {
		return x.use.OpenBackup(r.Context(), r.database(), r.beginning())
	}, func(d deletion.Download) (Answer, error) { return backupOf(d.Backup, d.File), nil })
}

func (x deletionRoutes) recover(r *Request) (Answer, error) {
	o, err := x.use.Recover(r.Context(), r.Target.(deletion.Recoverable))
	return Accepted(wire.OperationWithMessage{Message: "The database is being recovered.", Operation: viewOperation(o)}), err
}
