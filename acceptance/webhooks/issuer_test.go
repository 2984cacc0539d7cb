package webhooks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// pipeline is one of a CI system whose issuer is on this machine; a namespace of the account trusts it.
type pipeline struct {
	*world
	issuer    *oidcissuer.Issuer
	namespace id.NamespaceID
	presented []string
}

const ciAudience = "https://pgherd.example.org"

func newPipeline(t *testing.T, w *world, i *oidcissuer.Issuer) *pipeline {
	t.Helper()
	made := w.admin(t, "ci-namespace", "create", "--account", w.Facts["PGHERD_ACCOUNT_ID"], "--name", "real")
	p := &pipeline{world: w, issuer: i, namespace: id.NamespaceID(fmt.Sprint(made["namespaceId"]))}
	w.admin(t, "ci-trust", "add", "--namespace", string(p.namespace), "--issuer", i.URL, "--audience", ciAudience,
		"--subject", "repo:acme/shop:**")
	return p
}

// admin runs a command of the operator's.
func (w *world) admin(t *testing.T, args ...string) (answer map[string]any) {
	t.Helper()
	program := stacktest.Build(t, "pgherd", stack.CrashPoints)
	cmd := exec.CommandContext(soon(t), program, append([]string{"admin", "--json"}, args...)...)
	cmd.Env = w.OperatorEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	noError(t, json.Unmarshal(out, &answer))
	return answer
}

// exchanges presents a new token, with a subject.
func (p *pipeline) exchanges(t *testing.T, subject string) (wire.ExchangedKey, error) {
	t.Helper()
	now := time.Now()
	token := p.issuer.Token(map[string]any{
		"iss": p.issuer.URL, "sub": subject, "aud": ciAudience, "jti": fmt.Sprint(len(p.presented)), "iat": now.Unix(),
		"exp": now.Add(5 * time.Minute).Unix(),
	})
	p.presented = append(p.presented, token)
	client := must(stack.Client(p.URL, "", nil))(t)
	return client.CITokens.Exchange(soon(t), wire.ExchangeToken{NamespaceID: p.namespace, Token: token})
}

// works has the pipeline exchange a token for a key, with which it is known.
func (p *pipeline) works(t *testing.T) {
	t.Helper()
	made := must(p.exchanges(t, "repo:acme/shop:pull_request"))(t)
	_, err := must(stack.Client(p.URL, made.APIKey, nil))(t).Databases.List().Page(soon(t), apiclient.Page{})
	stacktest.Refused(t, "a route of accounts", err, fault.KeyScopeDenied)
	p.presented = append(p.presented, made.APIKey)
	_, err = p.exchanges(t, "repo:evil/shop:pull_request")
	stacktest.Refused(t, "another's pipeline", err, fault.Unauthorized)
}

// isRefused has the host refuse the issuer's tokens without asking it.
func (p *pipeline) isRefused(t *testing.T) {
	t.Helper()
	before := p.issuer.Asked.Load()
	_, err := p.exchanges(t, "repo:acme/shop:pull_request")
	stacktest.Refused(t, "a token of a private issuer", err, fault.Unauthorized)
	if n := p.issuer.Asked.Load() - before; n != 0 {
		t.Errorf("an issuer at a private address was asked %d times", n)
	}
}

// isUnsaid looks for what the pipeline has presented in the host's log, which says why tokens were refused.
func (p *pipeline) isUnsaid(t *testing.T, log string) {
	t.Helper()
	text := must(os.ReadFile(log))(t)
	for _, secret := range p.presented {
		for part := range strings.SplitSeq(secret, ".") {
			if len(part) > 16 && bytes.Contains(text, []byte(part)) {
				t.Errorf("the log has %.30s", part)
			}
		}
	}
	for _, said := range []string{"ci_token.refused", "no trust of the namespace matches its subject", "could not be asked"} {
		if !bytes.Contains(text, []byte(said)) {
			t.Errorf("the log does not say: %s", said)
		}
	}
	if bytes.Contains(text, []byte("repo:evil")) {
		t.Error("the log quotes a token")
	}
}
