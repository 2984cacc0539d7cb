package webhooks_test

import (
	"database/sql"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/webhooks"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Each kind of receiver gets what it is due; one that hangs holds up none of the others.
func TestEveryKindOfReceiver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop, other := w.createDatabase(t, "shop"), w.createDatabase(t, "other")
	cases := []struct {
		path   string
		status int
		told   string
	}{
		{"/ok/all", 200, ""},
		{"/endless/all", 200, ""},
		{"/fail/all", 500, "the receiver answered 500"},
		{"/redirect/all", 307, "the receiver answered 307; redirects are not followed"},
		{"/reset/all", 0, "the connection was reset before an answer"},
		{"/hang/all", 0, "no answer within 10 seconds"},
	}
	endpoints := map[string]wire.WebhookSecret{}
	for _, c := range cases {
		endpoints[c.path] = w.register(t, c.path, "")
	}
	w.register(t, "/ok/other", other.ID)
	bound := w.register(t, "/ok/shop", shop.ID)

	for n := 1; n <= 6; n++ { // more than may be under way at the hanging one
		o, ended := w.backUp(t, shop), time.Now()
		all := w.awaitArrivals(t, "/ok/all", n)
		if took := time.Since(ended); took > 9*time.Second { // it hangs for ten
			t.Errorf("event %d took %s; was the hanging receiver waited for?", n, took)
		}
		checkDelivery(t, all[n-1], endpoints["/ok/all"].Secret, shop, o)
		checkDelivery(t, w.awaitArrivals(t, "/ok/shop", n)[n-1], bound.Secret, shop, o)
	}
	for _, c := range cases {
		var last wire.DeliveryAttempt
		eventually(t, "six first attempts at "+c.path, func() bool {
			list := slices.DeleteFunc(w.attempts(t, endpoints[c.path]), func(a wire.DeliveryAttempt) bool { return a.Attempt > 1 })
			if len(list) == 6 {
				last = list[0]
			}
			return len(list) == 6
		})
		checkAttempt(t, c.path, last, c.status, c.told)
	}
	if n := len(w.receiver.At("/ok/other")) + len(w.receiver.At("/ok/redirected")); n != 0 {
		t.Errorf("%d requests at the endpoint of another database or behind the redirect", n)
	}
	hanging := endpoints["/hang/all"]
	w.disable(t, hanging)
	if e := w.listed(t, hanging); e.Enabled || e.DisabledAt == nil {
		t.Errorf("after DELETE the endpoint is %+v", e)
	}
	before := len(w.receiver.At("/hang/all"))
	w.advance(t, time.Hour)
	eventually(t, "every event is tried again", func() bool { return len(w.receiver.At("/fail/all")) >= 12 })
	if n := len(w.receiver.At("/hang/all")); n != before {
		t.Errorf("%d requests at a disabled endpoint, want no more than the %d until then", n, before)
	}
}

// checkDelivery compares a request with the spec's section "Events".
func checkDelivery(t *testing.T, r webhooks.Received, secret string, d wire.CreatedDatabase, o wire.Operation) {
	t.Helper()
	names := slices.Sorted(maps.Keys(r.Header))
	want := []string{
		"Connection", "Content-Length", "Content-Type", "Service-Event-Id", "Service-Signature", "Service-Timestamp", "User-Agent",
	}
	if r.Method != http.MethodPost || !slices.Equal(names, want) {
		t.Errorf("%s with headers %q", r.Method, names)
	}
	if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "Service-Webhooks/1.0" {
		t.Errorf("headers %v", r.Header)
	}
	stamp, err := strconv.ParseInt(r.Header.Get("Service-Timestamp"), 10, 64)
	if err != nil || r.At.Sub(time.Unix(stamp, 0)).Abs() > 5*time.Second {
		t.Errorf("signed at %q", r.Header.Get("Service-Timestamp"))
	}
	if !signed(r, secret) {
		t.Error("the signature does not verify")
	}
	checkPayload(t, r.Body, d, o)
}

// checkPayload requires exactly the spec's fields.
func checkPayload(t *testing.T, body []byte, d wire.CreatedDatabase, o wire.Operation) {
	t.Helper()
	var payload map[string]any
	noError(t, json.Unmarshal(body, &payload))
	at, _ := payload["createdAt"].(string)
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		t.Errorf("createdAt: %v", err)
	}
	var failed any
	if o.Error != nil {
		failed = map[string]any{"code": o.Error.Code, "message": o.Error.Message}
	}
	want := map[string]any{
		"id": o.ID, "event": "backup." + string(o.Status), "createdAt": at,
		"data": map[string]any{
			"operationId": o.ID, "databaseId": d.ID, "databaseName": d.Name, "status": o.Status, "stage": o.Stage,
			"progress": float64(o.Progress), "error": failed,
		},
	}
	have := must(json.Marshal(payload))(t)
	wanted := must(json.Marshal(want))(t)
	if string(have) != string(wanted) {
		t.Errorf("payload:\n have %s\n want %s", have, wanted)
	}
}

// checkAttempt checks a first attempt as the API shows it.
func checkAttempt(t *testing.T, path string, a wire.DeliveryAttempt, status int, told string) {
	t.Helper()
	gotStatus, gotTold := 0, ""
	if a.StatusCode != nil {
		gotStatus = *a.StatusCode
	}
	if a.Error != nil {
		gotTold = *a.Error
	}
	if gotStatus != status || gotTold != told || a.Attempt != 1 || a.Event != "backup.succeeded" {
		t.Errorf("%s: %d %q, attempt %d of %s", path, gotStatus, gotTold, a.Attempt, a.Event)
	}
	if told == "" {
		if a.Status != "delivered" || a.NextAttemptAt != nil {
			t.Errorf("%s: %s, next attempt %v", path, a.Status, a.NextAttemptAt)
		}
		return
	}
	if a.Status != "pending" {
		t.Errorf("%s is %s", path, a.Status)
	}
	checkNext(t, a, 30*time.Second)
}

// checkNext checks when the next attempt is due: the delay and up to a fifth of it after this one has ended.
func checkNext(t *testing.T, a wire.DeliveryAttempt, delay time.Duration) {
	t.Helper()
	const busy = 3 * time.Second // between the end of an attempt and its record
	if a.NextAttemptAt == nil {
		t.Fatalf("attempt %d has no next one", a.Attempt)
	}
	wait := a.NextAttemptAt.Sub(a.At.Add(time.Duration(a.TookMs) * time.Millisecond))
	if wait < delay-10*time.Millisecond || wait > delay*12/10+busy {
		t.Errorf("after attempt %d the next one is due in %s, want about %s", a.Attempt, wait, delay)
	}
}

// A backup that is canceled and one that fails tell of it.
func TestUnhappyEndsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.createDatabase(t, "unhappy")
	e := w.register(t, "/ok/unhappy", "")
	db := w.customer(t, d)
	must(db.ExecContext(soon(t), "CREATE TABLE item (n int)"))(t)
	tx := must(db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	must(tx.ExecContext(soon(t), "LOCK TABLE item IN ACCESS EXCLUSIVE MODE"))(t) // pg_dump waits for it

	canceled := w.startBackup(t, d)
	w.ended(t, canceled.ID, "running")
	must(w.api(t).Operations.Cancel(soon(t), canceled.ID))(t)
	checkDelivery(t, w.awaitArrivals(t, "/ok/unhappy", 1)[0], e.Secret, d, w.ended(t, canceled.ID, "canceled"))

	failing := w.startBackup(t, d)
	o := w.endDumps(t, failing.ID)
	if o.Error == nil || o.Error.Code == "" {
		t.Fatalf("a failed operation has no error: %+v", o)
	}
	checkDelivery(t, w.awaitArrivals(t, "/ok/unhappy", 2)[1], e.Secret, d, o)
}

// customer is one connection of the database's owner.
func (w *world) customer(t testing.TB, d wire.CreatedDatabase) *sql.DB {
	t.Helper()
	u := must(url.Parse(d.ConnectionString))(t)
	query := u.Query()
	query.Set("sslrootcert", w.Facts["PGHERD_CA_FILE"])
	u.RawQuery = query.Encode()
	db := must(sql.Open("postgres", u.String()))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the host may have ended before
	return db
}

// endDumps ends every session of a dump that waits for a lock, until the backup has failed.
func (w *world) endDumps(t testing.TB, of id.OperationID) (o wire.Operation) {
	t.Helper()
	server := must(sql.Open("postgres", w.Facts["PGHERD_SERVER_URL"]))(t)
	defer server.Close()
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = $1 AND wait_event_type = 'Lock'`
	eventually(t, "a backup that fails", func() bool {
		must(server.ExecContext(soon(t), end, "pgherd-backup-"+string(of)))(t)
		o = w.operation(t, of)
		return o.Status == "failed"
	})
	return o
}
