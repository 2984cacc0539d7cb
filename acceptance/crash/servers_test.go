package crash_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// exchanged is a secret in whose place comes another.
const exchanged = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"

// A secret is exchanged while the agent runs, and the operations of a server that is gone for good are ended.
func TestAServerFromFirstToLast(t *testing.T) {
	w := startStack(t)
	u := w.newUser(t, 10)
	server := "--server=" + w.ServerID()
	well := func() error { return w.CheckServer(soon(t)) }
	works := func(what string, do func() error) {
		t.Helper()
		eventually(t, what, func() (bool, string) {
			err := do()
			return err == nil, fmt.Sprint(err)
		})
	}
	works("the server is well", well) // the agent looks at PgBouncer every second
	writes := func(secrets ...string) {
		t.Helper()
		noError(t, os.WriteFile(w.AgentSecretFile(), []byte(strings.Join(secrets, "\n")+"\n"), 0o600))
		noError(t, w.agent.HangUp())
	}
	writes(exchanged, w.AgentSecret())
	noError(t, well())
	set := func() error {
		_, err := w.Admin(soon(t), "server", "set", server, "--agent-secret-file", w.AgentSecretFile())
		return err
	}
	works("the new secret is taken", set)
	writes(exchanged)
	made := u.create(t, w.api, "kept")
	noError(t, well())
	writes(w.AgentSecret())
	eventually(t, "the secret that is used is refused", func() (bool, string) { return well() != nil, "it is accepted" })
	writes(exchanged)
	works("it is accepted again", well)

	noError(t, w.batch.Freeze())
	backup := must(u.at(w.api).Backups.Start(soon(t), made.ID))(t)
	noError(t, w.agent.Kill())
	noError(t, w.batch.Thaw())
	must(w.Admin(soon(t), "server", "disable", server))(t)
	fail := func(more ...string) error {
		_, err := w.Admin(soon(t), append([]string{
			"operation", "fail", "--operation", string(backup.Operation.ID), "--reason", "it burned", "--yes",
		}, more...)...)
		return err
	}
	if err := fail(); err == nil || !strings.Contains(err.Error(), "--server-gone") {
		t.Error(err)
	}
	works("no worker has it", func() error { return fail("--server-gone") })
	ended := must(u.at(w.api).Operations.Get(soon(t), backup.Operation.ID))(t)
	if ended.Status != "failed" || ended.Error == nil || !strings.HasSuffix(ended.Error.Message, "it burned") {
		t.Errorf("%+v", ended)
	}
}
