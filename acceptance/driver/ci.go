package driver

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
)

// NewNamespace implements spec.CIOperator.
func (o fakeOperator) NewNamespace(a spec.Account) (id.NamespaceID, error) {
	n, err := o.use().CreateNamespace(context.Background(), a.ID, o.s.entropy.Base62(12))
	return n.ID, err
}

// NewCIKeyOf implements spec.CIOperator.
func (o fakeOperator) NewCIKeyOf(n id.NamespaceID) (spec.Key, error) {
	key, text, err := o.use().CreateCIKey(context.Background(), n)
	return spec.Key{ID: key.ID, Text: text}, err
}

// RevokeCIKey implements spec.CIOperator.
func (o fakeOperator) RevokeCIKey(k spec.Key) error {
	return o.use().RevokeCIKey(context.Background(), k.ID)
}

// RevokeNamespace implements spec.CIOperator.
func (o fakeOperator) RevokeNamespace(n id.NamespaceID) error {
	return o.use().RevokeNamespace(context.Background(), n)
}

// AddTrust implements spec.CIOperator.
func (o fakeOperator) AddTrust(n id.NamespaceID, issuer, audience, subject string) (id.TrustID, error) {
	t, err := o.use().AddTrust(context.Background(), keys.NewTrust{
		NamespaceID: n, Issuer: issuer, Audience: audience, Subject: subject,
	})
	return t.ID, err
}

// RemoveTrust implements spec.CIOperator.
func (o fakeOperator) RemoveTrust(t id.TrustID) error {
	return o.use().RemoveTrust(context.Background(), t)
}

// fakePipelines have an issuer that is not asked over the network.
type fakePipelines struct{ issuers *fakeissuer.Issuers }

// Issuer implements spec.Pipelines.
func (fakePipelines) Issuer() string { return "https://ci.example.org" }

// Token implements spec.Pipelines.
func (p fakePipelines) Token(c citoken.Claims) string { return p.issuers.Token(c) }

// NewNamespace implements spec.CIOperator.
func (o realOperator) NewNamespace(a spec.Account) (id.NamespaceID, error) {
	made, err := o.admin("ci-namespace", "create", "--account", string(a.ID), "--name", rand.Text())
	return id.NamespaceID(fmt.Sprint(made["namespaceId"])), err
}

// NewCIKeyOf implements spec.CIOperator.
func (o realOperator) NewCIKeyOf(n id.NamespaceID) (spec.Key, error) {
	return o.key("ci-key", "create", "--namespace", string(n))
}

// RevokeCIKey implements spec.CIOperator.
func (o realOperator) RevokeCIKey(k spec.Key) error {
	_, err := o.admin("ci-key", "revoke", "--key", string(k.ID))
	return err
}

// RevokeNamespace implements spec.CIOperator.
func (o realOperator) RevokeNamespace(n id.NamespaceID) error {
	_, err := o.admin("ci-namespace", "revoke", "--namespace", string(n))
	return err
}

// AddTrust implements spec.CIOperator.
func (o realOperator) AddTrust(n id.NamespaceID, issuer, audience, subject string) (id.TrustID, error) {
	made, err := o.admin("ci-trust", "add", "--namespace", string(n), "--issuer", issuer, "--audience", audience,
		"--subject", subject)
	return id.TrustID(fmt.Sprint(made["trustId"])), err
}

// RemoveTrust implements spec.CIOperator.
func (o realOperator) RemoveTrust(t id.TrustID) error {
	_, err := o.admin("ci-trust", "remove", "--trust", string(t))
	return err
}
