// Package webhooks_test delivers the events of a real pgherd to a real TLS receiver.
package webhooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/acceptance/webhooks"
)

var program = stack.NewProgram(stack.CrashPoints)

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// patience bounds every single wait; only a failing test waits for its end.
const patience = time.Minute

// world is a development host, a receiver that it may reach, and the owner's key.
type world struct {
	*stack.Dev
	receiver *webhooks.Receiver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := stacktest.Dir(t)
	r, err := webhooks.Listen(filepath.Join(dir, "receiver"))
	noError(t, err)
	t.Cleanup(func() { noError(t, r.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	d, err := stack.StartDev(ctx, stack.DevOptions{
		Dir: dir, Binary: stacktest.Binary(t, program), Flags: []string{"--allow-private-webhooks", "--webhook-ca-file=" + r.CAFile},
	})
	noError(t, err)
	w := &world{Dev: d, receiver: r}
	t.Cleanup(func() {
		if t.Failed() {
			w.showLog(t, filepath.Join(dir, "dev", "log"))
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
	text, err := os.ReadFile(file)
	noError(t, err)
	t.Logf("%s", text[max(0, len(text)-most):])
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon is a context for one wait.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually looks again and again until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// call sends a request that must have the given answer, and returns what it holds.
func call[T any](t testing.TB, w *world, method, path string, body any, want int) (v T) {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		noError(t, err)
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(soon(t), method, w.URL+"/api/v1"+path, content)
	noError(t, err)
	request.Header.Set("Authorization", "Bearer "+w.Facts["PGHERD_API_KEY"])
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	noError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	noError(t, err)
	if response.StatusCode != want {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, response.StatusCode, want, text)
	}
	if len(text) > 0 {
		noError(t, json.Unmarshal(text, &v))
	}
	return v
}

// advance moves the host's clock.
func (w *world) advance(t testing.TB, by time.Duration) {
	t.Helper()
	body := fmt.Sprintf(`{"advanceSeconds":%g}`, by.Seconds())
	request, err := http.NewRequestWithContext(soon(t), http.MethodPost, w.OpsURL+"/dev/clock", bytes.NewBufferString(body))
	noError(t, err)
	response, err := http.DefaultClient.Do(request)
	noError(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the clock does not move: %s", response.Status)
	}
}

type endpoint struct {
	ID                  string
	DatabaseID          *string
	URL                 string
	Enabled             bool
	ConsecutiveFailures int
	DisabledAt          *time.Time
	Secret              string
}

// register makes an endpoint at a path of the receiver, for one database or, where it is empty, for all.
func (w *world) register(t testing.TB, path, database string) endpoint {
	t.Helper()
	body := map[string]string{"url": w.receiver.URL + path}
	if database != "" {
		body["databaseId"] = database
	}
	e := call[struct{ Data endpoint }](t, w, http.MethodPost, "/webhooks", body, http.StatusCreated).Data
	if !e.Enabled || len(e.Secret) < 32 || e.Secret[:6] != "whsec_" {
		t.Fatalf("a new endpoint is %+v", e)
	}
	return e
}

func (w *world) rotate(t testing.TB, e endpoint) endpoint {
	t.Helper()
	return call[struct{ Data endpoint }](t, w, http.MethodPost, "/webhooks/"+e.ID+"/rotate", nil, http.StatusOK).Data
}

// disable is DELETE.
func (w *world) disable(t testing.TB, e endpoint) {
	t.Helper()
	call[any](t, w, http.MethodDelete, "/webhooks/"+e.ID, nil, http.StatusNoContent)
}

// listed is the endpoint as the list shows it.
func (w *world) listed(t testing.TB, e endpoint) endpoint {
	t.Helper()
	for _, one := range call[struct{ Data []endpoint }](t, w, http.MethodGet, "/webhooks", nil, http.StatusOK).Data {
		if one.ID == e.ID {
			return one
		}
	}
	t.Fatalf("endpoint %s is not listed", e.ID)
	return endpoint{}
}

type attempt struct {
	DeliveryID, EventID, Event, Status string
	Attempt                            int
	At                                 time.Time
	TookMs                             int64
	StatusCode                         *int
	Error                              *string
	NextAttemptAt                      *time.Time
}

// attempts are those at an endpoint, newest first.
func (w *world) attempts(t testing.TB, e endpoint) []attempt {
	t.Helper()
	return call[struct{ Data []attempt }](t, w, http.MethodGet, "/webhooks/"+e.ID+"/deliveries", nil, http.StatusOK).Data
}

// awaitAttempts waits until so many attempts at an endpoint are recorded, and returns the newest.
func (w *world) awaitAttempts(t testing.TB, e endpoint, n int) attempt {
	t.Helper()
	var list []attempt
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

type database struct{ ID, Name, ConnectionString string }

func (w *world) createDatabase(t testing.TB, name string) database {
	t.Helper()
	body := map[string]string{"name": name, "displayName": name}
	return call[database](t, w, http.MethodPost, "/databases", body, http.StatusCreated)
}

type operation struct {
	ID, Status, Stage string
	Progress          int
	Error             *failure
}

type failure struct{ Code, Message string }

func (w *world) startBackup(t testing.TB, d database) operation {
	t.Helper()
	return call[struct{ Operation operation }](
		t, w, http.MethodPost, "/databases/"+d.ID+"/backups", nil, http.StatusAccepted).Operation
}

func (w *world) operation(t testing.TB, id string) operation {
	t.Helper()
	return call[operation](t, w, http.MethodGet, "/operations/"+id, nil, http.StatusOK)
}

// ended waits until an operation has the status.
func (w *world) ended(t testing.TB, id, status string) operation {
	t.Helper()
	var o operation
	eventually(t, "operation "+status, func() bool {
		o = w.operation(t, id)
		return o.Status == status
	})
	return o
}

// backUp makes an event of a backup that succeeds.
func (w *world) backUp(t testing.TB, d database) operation {
	t.Helper()
	return w.ended(t, w.startBackup(t, d).ID, "succeeded")
}
