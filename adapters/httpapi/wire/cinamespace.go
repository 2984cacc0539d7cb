package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
)

// Namespace is a CI namespace. A revoked one has no trusts and no keys that work, for good.
type Namespace struct {
	ID        id.NamespaceID `json:"id"`
	Name      string         `json:"name" example:"web"`
	CreatedAt time.Time      `json:"createdAt"`
	RevokedAt *time.Time     `json:"revokedAt"`
}

// Trust is whose OIDC tokens can be exchanged for keys of a CI namespace.
type Trust struct {
	ID          id.TrustID      `json:"id"`
	NamespaceID id.NamespaceID  `json:"namespaceId"`
	Issuer      string          `json:"issuer" example:"https://token.actions.githubusercontent.com"`
	Audience    string          `json:"audience" example:"https://pgherd.example.com"`
	Subject     citoken.Pattern `json:"subject" description:"a pattern" example:"repo:acme/shop:pull_request"`
	CreatedAt   time.Time       `json:"createdAt"`
}

// AddTrust says whose OIDC tokens to trust.
type AddTrust struct {
	Issuer   string `json:"issuer" description:"https URL, as in its tokens" example:"https://token.actions.githubusercontent.com"`
	Audience string `json:"audience" description:"of its tokens, and no other" example:"https://pgherd.example.com"`
	Subject  string `json:"subject" description:"a pattern, as repo:acme/shop:**" example:"repo:acme/shop:pull_request"`
}
