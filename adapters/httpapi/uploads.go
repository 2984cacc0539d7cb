package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/upload"
)

type uploadRoutes struct{ use *uploads.Uploads }

const uploadParameter = "uploadId"

func (x uploadRoutes) routes() []Route {
	const all = databasesPath + "/{id}/backups/restore-upload"
	return []Route{
		{
			Name: "announceUpload", Summary: "Announce a dump of your own, to restore a database with a single login from",
			Method: http.MethodPost, Path: all + "/init", Class: ratelimit.Create, Target: Database, Action: account.Own,
			Gate: rollout.RestoreUpload,
			Body: JSON[wire.AnnounceUpload](), Handle: x.announce,
			Answers: documented(http.StatusCreated, wire.Data[wire.Upload]{}),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.DatabaseStateConflict, fault.BackupStorageFull, fault.AgentError,
				fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "sendUpload", Summary: "Send an announced dump, whole or in parts, or ask how much of it has come",
			Method: http.MethodPut, Path: all + "/{" + uploadParameter + "}", Class: ratelimit.Write, Target: Database,
			Action: account.Own, Gate: rollout.RestoreUpload,
			Body: Stream(gzipType, "application/octet-stream"), Handle: x.send,
			Answers: []Documented{{Status: http.StatusNoContent, Range: "What has come, from the beginning; absent where nothing has"}},
			Refusals: []fault.Code{
				fault.UploadNotFound, fault.BackupConflict, fault.BackupStorageFull, fault.AgentError, fault.AgentRouteUnavailable,
				fault.ServerBusy,
			},
		},
		{
			Name: "completeUpload", Summary: "Restore a database from a dump that was sent",
			Method: http.MethodPost, Path: all + "/complete", Class: ratelimit.Create, Target: Database, Action: account.Own,
			Gate: rollout.RestoreUpload,
			Body: JSON[wire.CompleteUpload](), Handle: x.complete,
			Answers: documented(http.StatusAccepted, wire.OperationWithMessage{}),
			Refusals: []fault.Code{
				fault.UploadNotFound, fault.BackupConflict, fault.ManagedRoleConflict, fault.LegacyRoleConflict,
				fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	}
}

func (x uploadRoutes) announce(r *Request) (Answer, error) {
	b := Decoded[wire.AnnounceUpload](r)
	u, err := x.use.Announce(r.Context(), r.database(), b.SizeBytes, b.ChecksumSHA256)
	return Created(wire.Data[wire.Upload]{Data: wire.Upload{
		UploadID: u.ID, UploadURL: databasesPath + "/" + string(u.DatabaseID) + "/backups/restore-upload/" + string(u.ID),
		ExpiresAt: instant(u.ExpiresAt),
	}}), err
}

func (x uploadRoutes) send(r *Request) (Answer, error) {
	part, err := r.header(upload.Header)
	if err != nil {
		return Answer{}, err
	}
	received, err := x.use.Send(r.Context(), r.database(), id.UploadID(r.Param(uploadParameter)), uploads.Content{
		Range: part, Length: int64(r.body.length), Body: r.Stream(),
	})
	return Answer{Status: http.StatusNoContent, Range: upload.RangeOf(received)}, err
}

func (x uploadRoutes) complete(r *Request) (Answer, error) {
	b := Decoded[wire.CompleteUpload](r)
	if _, err := id.Parse[id.UploadID](string(b.UploadID)); err != nil {
		return Answer{}, fault.Invalid(uploadParameter, "must be a lowercase UUID")
	}
	if err := confirmed("confirmDisconnect", b.ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	o, err := x.use.Complete(r.Context(), r.database(), b.UploadID)
	return Accepted(wire.OperationWithMessage{Message: "The restore is queued.", Operation: viewOperation(o)}), err
}
