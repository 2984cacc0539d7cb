package webhooks_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

// Only the development host may be told to send to private addresses or to trust another CA.
func TestOtherHostsRefuseWhatIsForDevelopment(t *testing.T) {
	binary := stacktest.Build(t, "pgherd", stack.CrashPoints)
	dir := t.TempDir()
	commands := [][]string{{"api"}, {"batch"}, {"admin", "server", "list"}}
	settings := map[string]string{
		"PGHERD_ALLOW_PRIVATE_WEBHOOKS": "true", "PGHERD_WEBHOOK_CA_FILE": filepath.Join(dir, "ca.pem"),
	}
	for _, command := range commands {
		for name, value := range settings {
			cmd := exec.CommandContext(soon(t), binary, command...)
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), name + "=" + value, "PGHERD_KEYRING_FILE=" + filepath.Join(dir, "none"),
				"PGHERD_METADATA_URL=postgres://127.0.0.1:1/none",
			}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), name+" is for the development host only") {
				t.Errorf("%s with %s: %v\n%s", command, name, err, out)
			}
		}
	}
}

// Without its permission, a host sends to no private address: not to a new endpoint, and not to one that was made before. Nor
// does it ask an issuer of CI tokens at one.
func TestPrivateAddressesAreRefusedAtEveryAttempt(t *testing.T) {
	t.Parallel()
	issuer := oidcissuer.Start()
	t.Cleanup(issuer.Stop)
	w := newWorld(t, issuer.CA)
	ci := newPipeline(t, w, issuer)
	ci.works(t)
	d := w.createDatabase(t, "private")
	const path = "/ok/private"
	e := w.register(t, path, "")
	noError(t, w.Stop(soon(t)))
	w.Flags = nil
	noError(t, w.Restart(soon(t), ""))
	_, err := w.api(t).Webhooks.Create(soon(t), wire.CreateWebhook{URL: w.receiver.URL + path})
	stacktest.Refused(t, "the request", err, fault.InvalidWebhookEndpoint)
	w.backUp(t, d)
	a := w.awaitAttempts(t, e, 1)
	if a.StatusCode != nil || a.Error == nil || !strings.Contains(*a.Error, "the URL cannot be used") || a.Status != "pending" {
		t.Errorf("the attempt is recorded as %+v", a)
	}
	if n := len(w.receiver.At(path)); n != 0 {
		t.Errorf("%d requests at a private address", n)
	}
	ci.isRefused(t)
	ci.isUnsaid(t, w.log)
}
