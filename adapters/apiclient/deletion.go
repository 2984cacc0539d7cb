package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Deleted are the calls about deleted databases.
type Deleted struct{ c *Client }

// Delete deletes a database, which can be recovered for a while. The operation tells when it is gone.
func (d Databases) Delete(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, d.c, remove("/databases/%s", string(database)), opts)
}

// List reads one page of the deleted databases of the account, the one deleted last first.
func (d Deleted) List(ctx context.Context, p Page, opts ...Option) (wire.Page[wire.DeletedDatabase], error) {
	return listOf[wire.DeletedDatabase](ctx, d.c, p, get("/databases/deleted"), opts)
}

// All reads every deleted database of the account.
func (d Deleted) All(ctx context.Context, opts ...Option) iter.Seq2[wire.DeletedDatabase, error] {
	return allOf[wire.DeletedDatabase](ctx, d.c, get("/databases/deleted"), opts)
}

// Download opens the deletion backup of a database. The context holds for the whole download; the caller closes it.
func (d Deleted) Download(ctx context.Context, database id.DatabaseID, opts ...Option) (*Download, error) {
	return d.c.download(ctx, get("/databases/%s/deletion-backup", string(database)), opts)
}

// Recover recovers a deleted database. Repeated calls get the same operation.
func (d Deleted) Recover(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, d.c, post(nil, "/databases/%s/recover", string(database)).mayRepeat(), opts)
}
