package admin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// lists runs a command that prints a table, and returns its rows as with --json.
func (c console) lists(args ...string) (rows []map[string]any) {
	c.t.Helper()
	out, err := c.run(append(args, "--json")...)
	check.NoError(c.t, err)
	check.NoError(c.t, json.Unmarshal([]byte(out), &rows))
	return rows
}

func TestAnOperatorKeepsCIKeysApart(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	full := text(t, c.does("key", "create", "--account="+account, "--label=deploy"), "keyId")
	namespace := text(t, c.does("ci-namespace", "create", "--account="+account, "--name=main"), "namespaceId")
	other := text(t, c.does("ci-namespace", "create", "--account="+account, "--name=other"), "namespaceId")
	made := c.does("ci-key", "create", "--namespace="+namespace)
	key, secret := text(t, made, "keyId"), text(t, made, "apiKey")
	if made["kind"] != "ci" || made["namespaceId"] != namespace || !strings.HasPrefix(secret, "pghci_"+key+"_") {
		t.Errorf("a new key is %v", made)
	}
	second := text(t, c.does("ci-key", "create", "--namespace="+namespace), "keyId")
	kept := text(t, c.does("ci-key", "create", "--namespace="+other), "keyId")

	for _, k := range c.lists("key", "list", "--account="+account) {
		ci := k["keyId"] != full
		if (k["kind"] == "ci") != ci || (k["scope"] == nil) != ci || (k["namespaceId"] != nil) != ci || k["expiresAt"] != nil {
			t.Errorf("listed is %v", k)
		}
	}
	for _, k := range c.lists("ci-key", "list", "--namespace="+namespace) {
		if k["kind"] != "ci" || k["scope"] != nil || k["namespaceId"] != namespace || k["keyId"] == kept || k["revokedAt"] != nil {
			t.Errorf("listed is %v", k)
		}
	}
	c.refuses("pghci_"+key+" is a key of pgherd admin ci-key", "key", "revoke", "--key="+key)
	c.refuses("pghci_"+key+" is a key of pgherd admin ci-key", "key", "replace", "--key="+key)
	c.refuses("pgh_"+full+" is a key of pgherd admin key", "ci-key", "revoke", "--key="+full)
	c.does("ci-key", "revoke", "--key="+key)
	c.refuses("is revoked", "ci-key", "revoke", "--key="+key)
	c.refuses("does not exist", "ci-key", "revoke", "--key=00000000")

	c.does("ci-namespace", "revoke", "--namespace="+namespace)
	c.refuses("namespace: is revoked", "ci-namespace", "revoke", "--namespace="+namespace)
	c.refuses("namespace: is revoked", "ci-key", "create", "--namespace="+namespace)
	c.refuses("is revoked", "ci-key", "revoke", "--key="+second)
	c.does("ci-key", "revoke", "--key="+kept)
	listed := c.lists("ci-namespace", "list", "--account="+account)
	if len(listed) != 2 || listed[0]["name"] != "main" || listed[0]["revokedAt"] == nil || listed[1]["revokedAt"] != nil {
		t.Errorf("the namespaces are %v", listed)
	}
	if table, err := c.run("ci-key", "list", "--namespace="+namespace); err != nil || strings.Contains(table, secret) ||
		strings.Contains(table, "nil") || strings.Contains(table, "full") {
		t.Errorf("%v\n%s", err, table)
	}
	const nobody = "00000000-0000-4000-8000-000000000000"
	c.refuses("account: no account is called", "ci-namespace", "list", "--account="+nobody)
	c.refuses("namespace: does not exist", "ci-namespace", "revoke", "--namespace="+nobody)
	c.refuses("namespace: does not exist", "ci-key", "list", "--namespace="+nobody)
	c.refuses(`namespace: no namespace is called "trunk"`, "ci-key", "list", "--namespace=trunk")

	var did []string
	for _, e := range c.lists("audit", "list", "--account="+account) {
		if e["actor"] != "operator" {
			t.Errorf("logged is %v", e)
		}
		did = append([]string{e["action"].(string)}, did...)
	}
	const want = "account.created api_key.created ci_namespace.created ci_namespace.created " +
		"ci_key.created ci_key.created ci_key.created ci_key.revoked ci_namespace.revoked ci_key.revoked"
	if got := strings.Join(did, " "); got != want {
		t.Errorf("logged are %s", got)
	}
}

func TestAnOperatorTrustsPipelines(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	namespace := text(t, c.does("ci-namespace", "create", "--account="+account, "--name=main"), "namespaceId")
	add := func(changes ...string) []string {
		args := []string{"ci-trust", "add", "--namespace=" + namespace, "--issuer=https://ci.example.org",
			"--audience=https://pgherd.example.org", "--subject=repo:acme/shop:ref:refs/heads/*"}
		return append(args, changes...) // the last one of a flag counts
	}
	trust := c.does(add()...)
	id := text(t, trust, "trustId")
	c.refuses("subject: is trusted already", add()...)
	c.refuses("issuer: must be the https:// URL", add("--issuer=http://ci.example.org")...)
	c.refuses("audience: must have 1-255", add("--audience=")...)
	c.refuses("subject: must name whose it is", add("--subject=*")...)
	c.refuses("namespace: does not exist", add("--namespace=00000000-0000-4000-8000-000000000000")...)
	listed := c.lists("ci-trust", "list", "--namespace="+namespace)
	if len(listed) != 1 || listed[0]["trustId"] != id || listed[0]["subject"] != trust["subject"] || listed[0]["createdAt"] == nil {
		t.Errorf("the trusts are %v", listed)
	}
	c.does("ci-trust", "remove", "--trust="+id)
	c.refuses("trust: does not exist", "ci-trust", "remove", "--trust="+id)
}
