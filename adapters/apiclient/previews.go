package apiclient

import (
	"context"
	"net/url"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Previews are the calls about preview databases. They need a preview CI key.
type Previews struct{ c *Client }

// Create makes the preview of a ref, or gets the one that the ref has.
func (p Previews) Create(ctx context.Context, b wire.CreatePreview, opts ...Option) (wire.CreatedPreview, error) {
	return ask[wire.CreatedPreview](ctx, p.c, post(b, "/previews").mayRepeat(), opts)
}

// Get reads a preview, also a deleted one.
func (p Previews) Get(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.Preview, error) {
	return data[wire.Preview](ctx, p.c, get("/previews/%s", string(database)), opts)
}

// OfRef reads the preview that a ref has. PREVIEW_NOT_FOUND: it has none, or its preview is deleted.
func (p Previews) OfRef(ctx context.Context, ref string, opts ...Option) (wire.Preview, error) {
	c := get("/previews")
	c.path += "?" + url.Values{"ref": {ref}}.Encode()
	return data[wire.Preview](ctx, p.c, c, opts)
}

// Extend renews the lease of a preview.
func (p Previews) Extend(
	ctx context.Context, database id.DatabaseID, b wire.ExtendPreview, opts ...Option,
) (wire.Preview, error) {
	return data[wire.Preview](ctx, p.c, post(b, "/previews/%s/extend", string(database)), opts)
}

// SetBackupPolicy chooses whether the service makes daily backups of a preview.
func (p Previews) SetBackupPolicy(
	ctx context.Context, database id.DatabaseID, b wire.SetBackupPolicy, opts ...Option,
) (wire.Preview, error) {
	return data[wire.Preview](ctx, p.c, patch(b, "/previews/%s/backup-policy", string(database)), opts)
}

// Delete has a preview deleted; its record tells when it is.
func (p Previews) Delete(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.Preview, error) {
	return data[wire.Preview](ctx, p.c, remove("/previews/%s", string(database)), opts)
}
