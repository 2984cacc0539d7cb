package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/upload"
)

type uploadRoutes struct{ use *uploads.Uploads }

const uploadParameter = "uploadId"

func (x uploadRoutes) routes() []serve.Route {
	const all = databasesPath + "/{id}/backups/restore-upload"
	return []serve.Route{
		{
			Name: "announceUpload", Summary: "Announce a dump of your own, to restore a database with a single login from",
			Method: http.MethodPost, Path: all + "/init", Class: ratelimit.Create, Target: Database, Action: account.Own,
			Gate: rollout.RestoreUpload,
			Body: serve.JSON[wire.AnnounceUpload](), Work: serve.Created(x.announce),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.DatabaseStateConflict, fault.BackupStorageFull, fault.AgentError,
				fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "sendUpload", Summary: "Send an announced dump, whole or in parts, or ask how much of it has come",
			Method: http.MethodPut, Path: all + "/{" + uploadParameter + "}", Class: ratelimit.Write, Target: Database,
			Action: account.Own, Gate: rollout.RestoreUpload,
			Body: serve.Stream(serve.Gzip, "application/octet-stream"), Work: serve.Work{Handle: x.send, Answers: received},
			Refusals: []fault.Code{
				fault.UploadNotFound, fault.BackupConflict, fault.BackupStorageFull, fault.AgentError, fault.AgentRouteUnavailable,
				fault.ServerBusy,
			},
		},
		{
			Name: "completeUpload", Summary: "Restore a database from a dump that was sent",
			Method: http.MethodPost, Path: all + "/complete", Class: ratelimit.Create, Target: Database, Action: account.Own,
			Gate: rollout.RestoreUpload,
			Body: serve.JSON[wire.CompleteUpload](), Work: queued("The restore is queued.", x.complete),
			Refusals: []fault.Code{
				fault.UploadNotFound, fault.BackupConflict, fault.ManagedRoleConflict, fault.LegacyRoleConflict,
				fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	}
}

func (x uploadRoutes) announce(r *serve.Request) (wire.Data[wire.Upload], error) {
	b := serve.Decoded[wire.AnnounceUpload](r)
	u, err := x.use.Announce(r.Context(), databaseOf(r), b.SizeBytes, b.ChecksumSHA256)
	return wire.Data[wire.Upload]{Data: wire.Upload{
		UploadID: u.ID, UploadURL: databasesPath + "/" + string(u.DatabaseID) + "/backups/restore-upload/" + string(u.ID),
		ExpiresAt: instant(u.ExpiresAt),
	}}, err
}

// received documents the answer of send.
var received = []serve.Documented{
	{Status: http.StatusNoContent, Range: "What has come, from the beginning; absent where nothing has"},
}

func (x uploadRoutes) send(r *serve.Request) (serve.Answer, error) {
	part, err := r.Header(upload.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	size, err := x.use.Send(r.Context(), databaseOf(r), id.UploadID(r.Param(uploadParameter)), uploads.Content{
		Range: part, Length: int64(r.BodyLength()), Body: r.Stream(),
	})
	return serve.Answer{Status: http.StatusNoContent, Range: upload.RangeOf(size)}, err
}

func (x uploadRoutes) complete(r *serve.Request) (o operation.Operation, err error) {
	b := serve.Decoded[wire.CompleteUpload](r)
	if _, err := id.Parse[id.UploadID](string(b.UploadID)); err != nil {
		return o, fault.Invalid(uploadParameter, "must be a lowercase UUID")
	}
	if err := confirmed("confirmDisconnect", b.ConfirmDisconnect); err != nil {
		return o, err
	}
	return x.use.Complete(r.Context(), databaseOf(r), b.UploadID, restore.Consents{
		AcceptIncomplete: b.AcceptIncomplete, ConfirmShrink: b.ConfirmShrink,
	})
}
