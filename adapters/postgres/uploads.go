package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

var uploadTable = pgdb.TableOf[upload.Upload]("uploads").WithOptional("operation_id").Added().
	Saved([]string{"id"}, []string{"operation_id", "expires_at"})

var (
	getUpload      = pgdb.Define(uploadTable.Read().Where("t.database_id = ? AND t.id = ?"))
	accountUploads = pgdb.Define(uploadTable.Read().Join("databases d ON d.id = t.database_id").
			Where("d.account_id = ?").OrderBy("t.created_at", "t.id"))
	removeUpload  = pgdb.Written("DELETE FROM uploads WHERE id = $1")
	doomedUploads = pgdb.Define(uploadTable.Read().Columns("d.server_id", "d.account_id").
			Join("databases d ON d.id = t.database_id").
			LeftJoin("operations o ON o.id = t.operation_id AND o."+open).
			Where("(CASE WHEN t.operation_id IS NULL THEN t.expires_at <= ? ELSE o.id IS NULL END)").
			OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))
)

type uploads struct{ pgdb.Rows[upload.Upload] }

func (u uploads) Get(ctx context.Context, db id.DatabaseID, of id.UploadID) (upload.Upload, error) {
	return u.One(ctx, getUpload, db, of)
}

func (u uploads) OfAccount(ctx context.Context, account id.AccountID) ([]upload.Upload, error) {
	return u.All(ctx, accountUploads, account)
}

func (u uploads) Remove(ctx context.Context, of id.UploadID) error {
	return u.Write(ctx, removeUpload, of)
}

func (u uploads) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedUpload, error) {
	return pgdb.All[ports.DoomedUpload](ctx, u.Session, doomedUploads, now, limit)
}
