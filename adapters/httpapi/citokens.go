package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

type tokenRoutes struct{ use *citokens.Tokens }

func (t tokenRoutes) routes() []Route {
	return []Route{{
		Name: "exchangeToken", Summary: "Exchange an OIDC token of a CI system for a preview CI key of one hour; needs no API key",
		Method: http.MethodPost, Path: keyed + "/previews/token", Class: ratelimit.Exchange, Key: Public, NoStore: true,
		Body: JSON[wire.ExchangeToken](), Handle: t.exchange,
		Answers:  documented(http.StatusCreated, wire.Data[wire.ExchangedKey]{}),
		Refusals: []fault.Code{fault.Unauthorized},
	}}
}

func (t tokenRoutes) exchange(r *Request) (Answer, error) {
	body := Decoded[wire.ExchangeToken](r)
	made, err := t.use.Exchange(r.Context(), citokens.Presented{
		NamespaceID: string(body.NamespaceID), Token: body.Token, Client: r.Client, RequestID: r.ID,
	})
	if err != nil {
		return Answer{}, err
	}
	return Created(wire.Data[wire.ExchangedKey]{Data: wire.ExchangedKey{
		APIKey: made.Text, ExpiresAt: instant(*made.Key.ExpiresAt), NamespaceID: made.Key.NamespaceID,
	}}), nil
}
