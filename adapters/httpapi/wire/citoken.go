package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// ExchangeToken presents an OIDC token of a CI system.
type ExchangeToken struct {
	NamespaceID id.NamespaceID `json:"namespaceId" description:"the CI namespace that trusts the token"`
	Token       string         `json:"token" description:"in its compact form" example:"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln"`
}

// ExchangedKey is a preview CI key that works until ExpiresAt.
type ExchangedKey struct {
	APIKey      string         `json:"apiKey" example:"pghci_4kTz81Qa_k3J0p8sWq2TzB7vYx5NcR1mDf6HgL9aEuZoQiVtS"`
	ExpiresAt   time.Time      `json:"expiresAt"`
	NamespaceID id.NamespaceID `json:"namespaceId"`
}
