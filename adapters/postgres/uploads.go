package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

var uploadTable = tableOf[upload.Upload]("uploads").withOptional("operation_id")

var uploadChanges = []string{"operation_id", "expires_at"}

var (
	addUpload      = define(uploadTable.insert())
	getUpload      = define(uploadTable.read().Where("t.database_id = ? AND t.id = ?"))
	accountUploads = define(uploadTable.read().Join("databases d ON d.id = t.database_id").
			Where("d.account_id = ?").OrderBy("t.created_at", "t.id"))
	saveUpload    = define(uploadTable.update(uploadChanges, "id = ?"))
	removeUpload  = written("DELETE FROM uploads WHERE id = $1")
	doomedUploads = define(uploadTable.read().Columns("d.server_id", "d.account_id").Join("databases d ON d.id = t.database_id").
			LeftJoin("operations o ON o.id = t.operation_id AND o."+open).
			Where("(CASE WHEN t.operation_id IS NULL THEN t.expires_at <= ? ELSE o.id IS NULL END)").
			OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))
)

type uploads struct{ session }

func (u uploads) Add(ctx context.Context, row upload.Upload) error {
	return u.write(ctx, addUpload, uploadTable.values(row)...)
}

func (u uploads) Get(ctx context.Context, db id.DatabaseID, of id.UploadID) (upload.Upload, error) {
	return one[upload.Upload](ctx, u.session, getUpload, db, of)
}

func (u uploads) OfAccount(ctx context.Context, account id.AccountID) ([]upload.Upload, error) {
	return all[upload.Upload](ctx, u.session, accountUploads, account)
}

func (u uploads) Save(ctx context.Context, row upload.Upload) error {
	return u.mustChange(ctx, ports.ErrNoRow, saveUpload, append(valuesOf(row, uploadChanges), row.ID)...)
}

func (u uploads) Remove(ctx context.Context, of id.UploadID) error {
	return u.write(ctx, removeUpload, of)
}

func (u uploads) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedUpload, error) {
	return all[ports.DoomedUpload](ctx, u.session, doomedUploads, now, limit)
}
