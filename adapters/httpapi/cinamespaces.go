package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewNamespace(n account.Namespace) wire.Namespace {
	return wire.Namespace{ID: n.ID, Name: n.Name, CreatedAt: instant(n.CreatedAt), RevokedAt: instantOrNull(n.RevokedAt)}
}

func viewTrust(t citoken.Trust) wire.Trust {
	return wire.Trust{
		ID: t.ID, NamespaceID: t.NamespaceID, Issuer: t.Issuer, Audience: t.Audience, Subject: t.Subject,
		CreatedAt: instant(t.CreatedAt),
	}
}

type namespaceRoutes struct{ use *keys.Pipelines }

func (n namespaceRoutes) routes() []serve.Route {
	const (
		list   = keyed + "/ci-namespaces"
		trusts = list + "/{namespaceId}/trusts"
	)
	rows := []serve.Route{
		{
			Name: "listCINamespaces", Summary: "List the CI namespaces of the account, including revoked ones",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Work: serve.OK(n.list),
		},
		{
			Name: "listTrusts", Summary: "List whose OIDC tokens a CI namespace trusts",
			Method: http.MethodGet, Path: trusts, Class: ratelimit.Read, Target: Namespace, Work: serve.OK(n.trusts),
		},
		{
			Name: "addTrust", Summary: "Have a CI namespace trust OIDC tokens: they can be exchanged for its keys from now on",
			Method: http.MethodPost, Path: trusts, Class: ratelimit.Write, Target: Namespace,
			Body: serve.JSON[wire.AddTrust](), Work: serve.Created(n.add),
		},
		{
			Name: "removeTrust", Summary: "Remove a trust of a CI namespace, and end the keys that were made by it",
			Method: http.MethodDelete, Path: trusts + "/{trustId}", Class: ratelimit.Write, Target: Namespace,
			Work: serve.Empty(n.remove), Refusals: []fault.Code{fault.TrustNotFound},
		},
	}
	for i := range rows {
		rows[i].Key = serve.FullAccount
	}
	return rows
}

func (n namespaceRoutes) list(r *serve.Request) (wire.Data[[]wire.Namespace], error) {
	list, err := n.use.Namespaces(r.Context(), r.Caller)
	return wire.Data[[]wire.Namespace]{Data: mapped(list, viewNamespace)}, err
}

func (n namespaceRoutes) trusts(r *serve.Request) (wire.Data[[]wire.Trust], error) {
	list, err := n.use.Trusts(r.Context(), namespaceOf(r))
	return wire.Data[[]wire.Trust]{Data: mapped(list, viewTrust)}, err
}

func (n namespaceRoutes) add(r *serve.Request) (wire.Data[wire.Trust], error) {
	body := serve.Decoded[wire.AddTrust](r)
	trust, err := n.use.AddTrust(r.Context(), namespaceOf(r), body.Issuer, body.Audience, body.Subject)
	return wire.Data[wire.Trust]{Data: viewTrust(trust)}, err
}

func (n namespaceRoutes) remove(r *serve.Request) error {
	return n.use.RemoveTrust(r.Context(), namespaceOf(r), id.TrustID(r.Param("trustId")))
}

// namespaceOf is the namespace that the pipeline found.
func namespaceOf(r *serve.Request) keys.ReachedNamespace {
	return r.Target.(keys.ReachedNamespace)
}
