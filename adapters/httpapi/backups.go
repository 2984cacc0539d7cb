package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
)

func viewBackup(b backup.Backup) wire.Backup {
	return wire.Backup{
		Filename: b.Filename, OperationID: b.OperationID, Trigger: b.Trigger, Format: b.Format, SizeBytes: b.SizeBytes,
		ChecksumSHA256: b.ChecksumSHA256, CreatedAt: instant(b.CreatedAt), VerifiedAt: instantOrNull(b.VerifiedAt),
		ExpiresAt: instantOrNull(b.ExpiresAt), RoleManifest: b.RoleManifest,
	}
}

type backups struct{ use *controlplane.Backups }

func (b backups) list(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	list, next, err := b.use.List(r.Context(), r.reached(), page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(list, viewBackup, next), nil
}

func (b backups) start(r *Request) (Answer, error) {
	work, err := b.use.Start(r.Context(), r.reached())
	if err != nil {
		return Answer{}, err
	}
	return Accepted(wire.OperationWithMessage{Message: "The backup is queued.", Operation: viewOperation(work)}), nil
}

// download streams the file as the agent sends it. Before that it may wait for a slot, as long as its client does.
func (b backups) download(r *Request) (Answer, error) {
	filename := backup.Filename(r.Param(filenameParameter))
	var d controlplane.Download
	left, err := r.whileClientStays(func() (err error) {
		d, err = b.use.Open(r.Context(), r.reached(), filename)
		return err
	})
	switch {
	case err != nil && left:
		return Answer{Status: statusClientLeft}, nil
	case err != nil:
		return Answer{}, err
	}
	return Answer{Status: http.StatusOK, Download: &Download{
		Filename: string(filename), ContentType: gzipType, Size: d.File.Size, Content: d.File.Body,
	}}, nil
}

func (b backups) delete(r *Request) (Answer, error) {
	return NoContent(), b.use.Delete(r.Context(), r.reached(), backup.Filename(r.Param(filenameParameter)))
}
