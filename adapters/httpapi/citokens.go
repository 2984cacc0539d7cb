package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

type tokenRoutes struct{ use *citokens.Tokens }

func (t tokenRoutes) routes() []serve.Route {
	return []serve.Route{{
		Name: "exchangeToken", Summary: "Exchange an OIDC token of a CI system for a preview CI key of one hour; needs no API key",
		Method: http.MethodPost, Path: keyed + "/previews/token", Class: ratelimit.Exchange, Key: serve.Public, NoStore: true,
		Body: serve.JSON[wire.ExchangeToken](), Work: serve.Created(t.exchange),
		Refusals: []fault.Code{fault.Unauthorized, fault.AccountSuspended},
	}}
}

func (t tokenRoutes) exchange(r *serve.Request) (out wire.Data[wire.ExchangedKey], err error) {
	body := serve.Decoded[wire.ExchangeToken](r)
	made, err := t.use.Exchange(r.Context(), citokens.Presented{
		NamespaceID: string(body.NamespaceID), Token: body.Token, Client: r.Client, RequestID: r.ID,
	})
	if err != nil {
		return out, err
	}
	return wire.Data[wire.ExchangedKey]{Data: wire.ExchangedKey{
		APIKey: made.Text, ExpiresAt: instant(*made.Key.ExpiresAt), NamespaceID: made.Key.NamespaceID,
	}}, nil
}
