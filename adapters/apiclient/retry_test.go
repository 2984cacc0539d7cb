package apiclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

func TestWhatIsTemporary(t *testing.T) {
	for _, e := range fault.Table {
		want := false
		switch e.Code {
		case fault.RateLimited, fault.ServerBusy, fault.InternalError, fault.RequestTimeout, fault.WebhookUpdateFailed:
			want = true
		}
		if got := temporary(&Error{Status: e.Status, ErrorBody: wire.ErrorBody{Code: e.Code}}); got != want {
			t.Errorf("%s: %t", e.Code, got)
		}
	}
	for status, want := range map[int]bool{404: false, 429: true, 500: false, 501: false, 502: true, 503: true, 504: true} {
		if got := temporary(&Error{Status: status}); got != want {
			t.Errorf("%d of a proxy: %t", status, got)
		}
	}
	if !temporary(io.ErrUnexpectedEOF) || temporary(permanent{io.EOF}) {
		t.Error("no answer is temporary, and what cannot change is not")
	}
}

func TestWaits(t *testing.T) {
	policy := retryPolicy{attempts: 20}
	busy := func(after time.Duration) error { return &Error{Status: 429, RetryAfter: after} }
	for _, c := range []struct {
		attempt int
		err     error
		jitter  float64
		want    time.Duration
		again   bool
	}{
		{1, io.EOF, 0, 125 * time.Millisecond, true},
		{1, io.EOF, 0.5, 187500 * time.Microsecond, true},
		{2, io.EOF, 0, 250 * time.Millisecond, true},
		{6, io.EOF, 0, 4 * time.Second, true},
		{19, io.EOF, 0, 4 * time.Second, true},
		{20, io.EOF, 0, 0, false},
		{1, busy(2 * time.Second), 0, 2 * time.Second, true},
		{9, busy(2 * time.Second), 0.5, 2250 * time.Millisecond, true},
		{1, busy(30 * time.Second), 0.5, 30500 * time.Millisecond, true},
		{1, &Error{Status: 404}, 0, 0, false},
	} {
		if wait, again := policy.wait(c.attempt, 0, c.err, c.jitter); wait != c.want || again != c.again {
			t.Errorf("attempt %d, %v: %s %t", c.attempt, c.err, wait, again)
		}
	}
	if _, again := policy.wait(1, 0, busy(31*time.Second), 0); again {
		t.Error("it waits longer than it may")
	}
}

// Patience outlasts attempts and long waits, but only where the API asks to come back soon.
func TestPatience(t *testing.T) {
	policy := retryPolicy{attempts: 2, patience: time.Minute}
	apis := func(status int, code fault.Code, after time.Duration) error {
		return &Error{Status: status, ErrorBody: wire.ErrorBody{Code: code}, RetryAfter: after}
	}
	for _, c := range []struct {
		attempt int
		taken   time.Duration
		err     error
		want    time.Duration
		again   bool
	}{
		{1, 0, apis(503, fault.Maintenance, 0), 125 * time.Millisecond, true},
		{50, 50 * time.Second, apis(429, fault.RateLimited, 10*time.Second), 10 * time.Second, true},
		{50, 51 * time.Second, apis(429, fault.RateLimited, 10*time.Second), 10 * time.Second, false},
		{1, 0, apis(503, fault.ServerBusy, time.Hour), time.Hour, false},
		{1, 0, apis(503, fault.FeatureDisabled, 0), 0, false},
		{1, 0, apis(503, fault.AgentRouteUnavailable, 0), 0, false},
		{2, 0, apis(500, fault.InternalError, 0), 0, false},
		{2, 0, &Error{Status: 503}, 0, false},
		{2, 0, io.EOF, 0, false},
	} {
		if wait, again := policy.wait(c.attempt, c.taken, c.err, 0); wait != c.want || again != c.again {
			t.Errorf("attempt %d after %s, %v: %s %t", c.attempt, c.taken, c.err, wait, again)
		}
	}
}

// Each wait is told before it begins.
func TestWaitsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answers: []string{"MAINTENANCE", "MAINTENANCE", "200"}}
		client := tr.client(t)
		var told []time.Duration
		client.retry.patience = time.Minute
		client.waiting = func(_ error, wait time.Duration) { told = append(told, wait) }
		if err := tell(t.Context(), client, get("/x"), nil); err != nil || len(told) != 2 {
			t.Errorf("%v, told of %v", err, told)
		}
	})
}

// transport answers one attempt after another, the last one for ever.
type transport struct {
	answers []string // codes, or "" for none
	sent    []*http.Request
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := tr.answers[min(len(tr.sent), len(tr.answers)-1)]
	tr.sent = append(tr.sent, r)
	if answer == "refused" {
		return nil, errors.New("connection refused")
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	switch answer {
	case "":
		return nil, errors.New("connection reset by peer")
	case "502":
		return &http.Response{StatusCode: 502, Body: http.NoBody}, nil
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "200":
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	return &http.Response{
		StatusCode: fault.Code(answer).Status(), Header: http.Header{"Retry-After": {"2"}},
		Body: io.NopCloser(strings.NewReader(`{"error":{"code":"` + answer + `","message":"m","details":[]}}`)),
	}, nil
}

func (tr *transport) client(t *testing.T) *Client {
	t.Helper()
	c := check.Must(New(Config{URL: "http://test", HTTP: &http.Client{Transport: tr}, Attempts: 3}))(t)
	c.jitter = func() float64 { return 0 }
	return c
}

func TestWhichCallsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		call    call
		opts    []Option
		answers []string
		sent    int
		took    time.Duration
		ok      bool
	}{
		"a GET that works":           {get("/x"), nil, []string{"200"}, 1, 0, true},
		"a GET without an answer":    {get("/x"), nil, []string{"", "200"}, 2, 125 * time.Millisecond, true},
		"a PATCH without an answer":  {patch(1, "/x"), nil, []string{"", "200"}, 2, 125 * time.Millisecond, true},
		"a DELETE without an answer": {remove("/x"), nil, []string{"", "200"}, 2, 125 * time.Millisecond, true},
		"a GET that hangs":           {get("/x"), nil, []string{"hang", "200"}, 2, attemptTimeout + 125*time.Millisecond, true},
		"a GET at a busy server":     {get("/x"), nil, []string{"SERVER_BUSY", "SERVER_BUSY", "200"}, 3, 4 * time.Second, true},
		"a GET that stays unheard":   {get("/x"), nil, []string{""}, 3, 375 * time.Millisecond, false},
		"a GET in maintenance":       {get("/x"), nil, []string{"MAINTENANCE"}, 1, 0, false},
		"a POST without an answer":   {post(nil, "/x"), nil, []string{"", "200"}, 1, 0, false},
		"a POST at a busy server":    {post(nil, "/x"), nil, []string{"SERVER_BUSY", "200"}, 1, 0, false},
		"a POST with a key":          {post(1, "/x").withKey(), nil, []string{"", "200"}, 2, 125 * time.Millisecond, true},
		"a POST whose key is left out": {
			post(nil, "/x").withKey(), []Option{IdempotencyKey("")}, []string{"", "200"}, 1, 0, false,
		},
		"a POST that wants to be": {post(nil, "/x").mayRepeat(), nil, []string{"", "200"}, 2, 125 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr, began := &transport{answers: c.answers}, time.Now()
			_, err := ask[nothing](t.Context(), tr.client(t), c.call, c.opts)
			if took := time.Since(began); len(tr.sent) != c.sent || took != c.took || (err == nil) != c.ok {
				t.Errorf("%s: sent %d times in %s: %v", name, len(tr.sent), took, err)
			}
			for _, again := range tr.sent[1:] {
				body, err := io.ReadAll(again.Body)
				if err != nil || again.Header.Get(keyHeader) != tr.sent[0].Header.Get(keyHeader) ||
					!bytes.Equal(body, bodyOf(t, tr.sent[0])) {
					t.Errorf("%s: the repetition is another request: %v", name, again)
				}
			}
		})
	}
}

// What an attempt without an answer may have removed is taken for removed where the next one does not find it.
func TestRemovalWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		answers []string
		removed bool
	}{
		{[]string{"BACKUP_NOT_FOUND"}, false},
		{[]string{"", "BACKUP_NOT_FOUND"}, true},
		{[]string{"hang", "BACKUP_NOT_FOUND"}, true},
		{[]string{"502", "BACKUP_NOT_FOUND"}, true},
		{[]string{"", "SERVER_BUSY", "BACKUP_NOT_FOUND"}, true},
		{[]string{"refused", "BACKUP_NOT_FOUND"}, false},
		{[]string{"SERVER_BUSY", "BACKUP_NOT_FOUND"}, false},
		{[]string{"", "DATABASE_NOT_FOUND"}, false},
		{[]string{"", ""}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := (&transport{answers: c.answers}).client(t).Backups.Delete(t.Context(), "d", "f")
			if (err == nil) != c.removed {
				t.Errorf("%q: %v", c.answers, err)
			}
		})
	}
}

func TestRemovalOfARoleWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := func() *Client { return (&transport{answers: []string{"", "ROLE_NOT_FOUND"}}).client(t) }
		deleted, err := client().Roles.Delete(t.Context(), "d", "r", wire.DeleteRole{Confirm: true})
		removed, also := client().LegacyRoles.Remove(t.Context(), "d", "r")
		want := wire.RoleRemoval{RoleID: "r", Status: "removed"}
		if deleted != want || removed != want || err != nil || also != nil {
			t.Errorf("%+v %v, %+v %v", deleted, err, removed, also)
		}
	})
}

func bodyOf(t *testing.T, r *http.Request) []byte {
	t.Helper()
	body := check.Must(r.GetBody())(t)
	return check.Must(io.ReadAll(body))(t)
}

// A context that would end during the wait ends the call at once, with the refusal.
func TestDeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := (&transport{answers: []string{"SERVER_BUSY"}}).client(t).Databases.Get(ctx, "d")
		var e *Error
		if !errors.As(err, &e) || e.Code != fault.ServerBusy || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// One that ends during a later attempt does not hide why there was one.
func TestDeadlineDuringARepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := (&transport{answers: []string{"SERVER_BUSY", "hang"}}).client(t).Databases.Get(ctx, "d")
		var e *Error
		if !errors.As(err, &e) || e.Code != fault.ServerBusy {
			t.Error(err)
		}
	})
}

// So does one that is canceled meanwhile.
func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := (&transport{answers: []string{"SERVER_BUSY"}}).client(t).Databases.Get(ctx, "d")
		if err == nil || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
