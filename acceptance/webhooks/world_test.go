// Package webhooks_test delivers the events of a real pgherd to a real TLS receiver.
package webhooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/acceptance/webhooks"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

func TestMain(m *testing.M) {
	sample.Tests(14)
	os.Exit(m.Run())
}

const patience = stacktest.Patience

var (
	noError = check.NoError
	soon    = stacktest.Soon
)

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

// world is a development host, a receiver that it may reach, and the owner's key.
type world struct {
	*stack.Dev
	receiver *webhooks.Receiver
	log      string
}

// newWorld makes a world; the host trusts further authorities, too.
func newWorld(t *testing.T, authorities ...[]byte) *world {
	t.Helper()
	dir := stacktest.Dir(t)
	r := must(webhooks.Listen(filepath.Join(dir, "receiver")))(t)
	t.Cleanup(func() { noError(t, r.Close()) })
	trusted := bytes.Join(append(authorities, must(os.ReadFile(r.CAFile))(t)), nil)
	noError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), trusted, 0o644))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	d, err := stack.StartDev(ctx, stack.DevOptions{
		Dir: dir, Binary: stacktest.Build(t, "pgherd", stack.CrashPoints), Flags: []string{
			"--allow-private-webhooks", "--webhook-ca-file=" + filepath.Join(dir, "ca.pem"),
		},
	})
	noError(t, err)
	w := &world{Dev: d, receiver: r, log: filepath.Join(dir, "dev", "log")}
	t.Cleanup(func() {
		if w.Running() {
			stacktest.WantHealthy(t, w)
		}
		if t.Failed() {
			w.showLog(t, w.log)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		noError(t, w.Stop(ctx))
	})
	return w
}

func (w *world) showLog(t *testing.T, file string) {
	t.Helper()
	const most = 8000
	text := must(os.ReadFile(file))(t)
	t.Logf("%s", text[max(0, len(text)-most):])
}

// eventually looks again and again until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	stacktest.Eventually(t, what, func() (bool, string) { return condition(), "it is not so" })
}

// api is what the owner calls.
func (w *world) api(t testing.TB) *apiclient.Client {
	t.Helper()
	return must(stack.Client(w.URL, w.Facts["PGHERD_API_KEY"], nil))(t)
}

// advance moves the host's clock.
func (w *world) advance(t testing.TB, by time.Duration) {
	t.Helper()
	body := fmt.Sprintf(`{"advanceSeconds":%g}`, by.Seconds())
	request := must(http.NewRequestWithContext(soon(t), http.MethodPost, w.OpsURL+"/dev/clock", bytes.NewBufferString(body)))(t)
	response := must(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the clock does not move: %s", response.Status)
	}
}

// register makes an endpoint at a path of the receiver, for one database or, where it is empty, for all.
func (w *world) register(t testing.TB, path string, of id.DatabaseID) wire.WebhookSecret {
	t.Helper()
	body := wire.CreateWebhook{URL: w.receiver.URL + path}
	if of != "" {
		body.DatabaseID = &of
	}
	e := must(w.api(t).Webhooks.Create(soon(t), body))(t)
	if !e.Enabled || len(e.Secret) < 32 || e.Secret[:6] != "whsec_" {
		t.Fatalf("a new endpoint is %+v", e)
	}
	return e
}

func (w *world) rotate(t testing.TB, e wire.WebhookSecret) wire.WebhookSecret {
	t.Helper()
	return must(w.api(t).Webhooks.RotateSecret(soon(t), e.ID))(t)
}

// disable is DELETE.
func (w *world) disable(t testing.TB, e wire.WebhookSecret) {
	t.Helper()
	noError(t, w.api(t).Webhooks.Disable(soon(t), e.ID))
}

// listed is the endpoint as the list shows it.
func (w *world) listed(t testing.TB, e wire.WebhookSecret) wire.Webhook {
	t.Helper()
	for one, err := range w.api(t).Webhooks.List().All(soon(t)) {
		noError(t, err)
		if one.ID == e.ID {
			return one
		}
	}
	t.Fatalf("endpoint %s is not listed", e.ID)
	return wire.Webhook{}
}

// attempts are those at an endpoint, newest first.
func (w *world) attempts(t testing.TB, e wire.WebhookSecret) []wire.DeliveryAttempt {
	t.Helper()
	return must(w.api(t).Webhooks.ListDeliveryAttempts(e.ID).Page(soon(t), apiclient.Page{}))(t).Data
}

// awaitAttempts waits until so many attempts at an endpoint are recorded, and returns the newest.
func (w *world) awaitAttempts(t testing.TB, e wire.WebhookSecret, n int) wire.DeliveryAttempt {
	t.Helper()
	var list []wire.DeliveryAttempt
	eventually(t, fmt.Sprintf("%d attempts at %s", n, e.URL), func() bool {
		list = w.attempts(t, e)
		return len(list) >= n
	})
	if len(list) != n {
		t.Fatalf("%d attempts at %s, want %d", len(list), e.URL, n)
	}
	return list[0]
}

// awaitArrivals waits until so many requests have arrived at a path.
func (w *world) awaitArrivals(t testing.TB, path string, n int) []webhooks.Received {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests at %s", n, path), func() bool { return len(w.receiver.At(path)) >= n })
	list := w.receiver.At(path)
	if len(list) != n {
		t.Fatalf("%d requests at %s, want %d", len(list), path, n)
	}
	return list
}

// signed reports whether the request is signed with the secret, as a receiver that knows only the documentation finds out.
func signed(r webhooks.Received, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(r.Header.Get("Service-Timestamp") + "."))
	mac.Write(r.Body)
	return hmac.Equal([]byte(r.Header.Get("Service-Signature")), []byte("v1="+hex.EncodeToString(mac.Sum(nil))))
}

// createDatabase makes one without daily backups: tests move the clock, and make those that they want.
func (w *world) createDatabase(t testing.TB, name string) wire.CreatedDatabase {
	t.Helper()
	never := database.NoSchedule
	return must(w.api(t).Databases.Create(soon(t), wire.CreateDatabase{Name: name, DisplayName: name, ScheduledBackup: &never}))(t)
}

func (w *world) startBackup(t testing.TB, d wire.CreatedDatabase) wire.Operation {
	t.Helper()
	return must(w.api(t).Backups.Start(soon(t), d.ID))(t).Operation
}

func (w *world) operation(t testing.TB, of id.OperationID) wire.Operation {
	t.Helper()
	return must(w.api(t).Operations.Get(soon(t), of))(t)
}

// ended waits until an operation has the status.
func (w *world) ended(t testing.TB, of id.OperationID, status operation.Status) (o wire.Operation) {
	t.Helper()
	eventually(t, "operation "+string(status), func() bool {
		o = w.operation(t, of)
		return o.Status == status
	})
	return o
}

// backUp makes an event of a backup that succeeds.
func (w *world) backUp(t testing.TB, d wire.CreatedDatabase) wire.Operation {
	t.Helper()
	return w.ended(t, w.startBackup(t, d).ID, operation.Succeeded)
}
