//go:build linux

package soak

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// pipelineDeeds are what a CI system does that has no key of its own.
var pipelineDeeds = map[plan.Do]deed{
	"exchange a CI token": {
		api: func(ctx context.Context, d *doing) (any, error) {
			trust, err := d.api().CINamespaces.AddTrust(ctx, d.by.namespace,
				wire.AddTrust{Issuer: d.issuer.URL, Audience: pipelineAudience, Subject: d.pipeline()})
			if err != nil {
				return nil, err
			}
			made, err := d.clientWith("", d.Host).CITokens.Exchange(ctx,
				wire.ExchangeToken{NamespaceID: d.by.namespace, Token: d.runToken()})
			if err == nil {
				d.secrets.Add(made.APIKey, "a CI key that was made by a token")
			}
			return nil, d.distrusts(ctx, trust.ID, made.APIKey)
		},
		svc: func(d *doing) []string {
			return append([]string{"trusts", "add", string(d.by.namespace)}, d.trusted()...)
		},
		operator: func(d *doing) [][]string {
			return [][]string{append([]string{"ci-trust", "add", "--namespace", string(d.by.namespace)}, d.trusted()...)}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			switch d.Way {
			case plan.Svc:
				made, err := d.runSvcWith(ctx, d.runToken(), "auth", "ci", "--namespace", string(d.by.namespace))
				if err == nil {
					d.secrets.Add(made.text("apiKey"), "a CI key that was made by a token")
				}
				_, _ = d.runSvc(ctx, "trusts", "remove", string(d.by.namespace), a.text("id"), "--yes")
			case plan.Operator:
				_, _ = d.admin(ctx, "ci-trust", "remove", "--trust", a.text("trustId"))
			}
		},
	},
}

const pipelineAudience = "https://soak.example.com"

// pipeline is whom the action has a namespace trust.
func (d *doing) pipeline() string { return "repo:acme/" + d.name + ":pull_request" }

func (d *doing) trusted() []string {
	return []string{"--issuer", d.issuer.URL, "--audience", pipelineAudience, "--subject", d.pipeline()}
}

// runToken is a token of the CI system's issuer, for a run of the pipeline.
func (d *doing) runToken() string {
	now := time.Now()
	token := d.issuer.Token(map[string]any{
		"iss": d.issuer.URL, "sub": d.pipeline(), "aud": pipelineAudience, "jti": d.name, "iat": now.Unix(),
		"exp": now.Add(5 * time.Minute).Unix(),
	})
	d.secrets.Add(token, "the token of a run")
	return token
}

// distrusts removes a trust. Once that is answered, a key that was made by it works no more.
func (d *doing) distrusts(ctx context.Context, trust id.TrustID, key string) error {
	err := d.api().CINamespaces.RemoveTrust(ctx, d.by.namespace, trust)
	if err != nil || key == "" {
		return err
	}
	if _, err := d.clientWith(key, 1-d.Host).Previews.Find(ctx, d.name); err == nil {
		d.broke("keys of trusts", "step %d: a key works whose trust was removed", d.step)
	}
	return nil
}
