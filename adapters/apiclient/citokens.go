package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// CITokens are the calls of pipelines that have no key.
type CITokens struct{ c *Client }

// Exchange exchanges an OIDC token of a CI system for a preview CI key; it needs no key. A token works once, so where the answer
// is lost, the pipeline needs another one.
func (t CITokens) Exchange(ctx context.Context, b wire.ExchangeToken, opts ...Option) (wire.ExchangedKey, error) {
	return data[wire.ExchangedKey](ctx, t.c, post(b, "/previews/token"), opts)
}
