package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// answers is an API that does all that it is asked for.
type answers func(path string) string

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewBufferString(a(r.URL.Path))),
	}, nil
}

// working is a service whose databases have an operation with a status.
func working(t *testing.T, status func() string) *service {
	t.Helper()
	return answering(t, func(string) string { return fmt.Sprintf(`{"data":[{"status":%q}],"nextCursor":null}`, status()) })
}

// answering is a service whose answers are those of a function of their paths.
func answering(t *testing.T, answer answers) *service {
	t.Helper()
	api := check.Must(apiclient.New(apiclient.Config{
		URL: "https://pgherd.example.com", HTTP: &http.Client{Transport: answer},
	}))(t)
	return &service{Client: api, held: new(held), turns: map[id.DatabaseID]chan struct{}{}}
}

func refusedWith(code fault.Code) error {
	return &apiclient.Error{Status: code.Status(), ErrorBody: wire.ErrorBody{Code: code}}
}

const one, other id.DatabaseID = "one", "other"

func TestChangesOfADatabaseTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := working(t, func() string { return "succeeded" })
		var at atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				check.NoError(t, s.alone(t.Context(), one, func() error {
					if at.Add(1) != 1 {
						t.Error("two at once")
					}
					time.Sleep(time.Second)
					at.Add(-1)
					return nil
				}))
			})
			for _, of := range []id.DatabaseID{"", other} { // which wait for none of that
				all.Go(func() { check.NoError(t, s.alone(t.Context(), of, func() error { return nil })) })
			}
		}
		all.Wait()

		hold := make(chan struct{})
		go func() { _ = s.alone(t.Context(), one, func() error { <-hold; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.alone(ctx, one, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting ends with %v", err)
		}
		close(hold)
	})
}

func TestAChangeWaitsForWhatIsUnderWay(t *testing.T) {
	conflict := refusedWith(fault.DatabaseStateConflict)
	for what, c := range map[string]struct {
		busyFor, refusedFor time.Duration
		refusal             error
		tries               int
		fails               bool
	}{
		"nothing is in the way":             {0, 0, nil, 1, false},
		"a backup is":                       {time.Minute, time.Minute, conflict, 31, false},
		"it has just ended":                 {0, time.Second, conflict, 2, false},
		"the state forbids it":              {0, time.Hour, conflict, 2, true},
		"the state forbids it, and is busy": {10 * time.Second, time.Hour, conflict, 7, true},
		"something else is wrong":           {time.Minute, time.Hour, refusedWith(fault.ValidationError), 1, true},
		"it takes too long":                 {time.Hour, time.Hour, conflict, int(briefly/pause) + 1, true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := working(t, func() string {
					if time.Since(began) < c.busyFor {
						return "running"
					}
					return "succeeded"
				})
				ctx, cancel := context.WithTimeout(t.Context(), briefly+pause/2) // between two tries
				defer cancel()
				tries := 0
				err := s.alone(ctx, one, func() error {
					if tries++; time.Since(began) < c.refusedFor {
						return c.refusal
					}
					return nil
				})
				if tries != c.tries || (err != nil) != c.fails || c.fails && !errors.Is(err, c.refusal) {
					t.Errorf("%d tries, then %v", tries, err)
				}
			})
		})
	}
}

func TestWhatIsGone(t *testing.T) {
	for _, c := range []struct {
		err  error
		gone bool
	}{
		{nil, false}, {errGone, true}, {errors.New("x"), false}, {refusedWith(fault.DatabaseNotFound), true},
		{refusedWith(fault.TrustNotFound), true}, {refusedWith(fault.RouteNotFound), false}, {refusedWith(fault.Unauthorized), false},
		{&apiclient.Error{Status: http.StatusNotFound}, false}, // says a proxy
	} {
		if got := gone(c.err); got != c.gone {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

func TestErrorsStandAtTheirAttributes(t *testing.T) {
	refused := &apiclient.Error{Status: 400, ErrorBody: wire.ErrorBody{
		Code: fault.ValidationError, Message: "wrong", Details: []fault.Detail{{Field: "displayName", Issue: "is too long"}},
	}}
	for what, known := range map[string]bool{"known": true, "unknown": false} {
		var diags diag.Diagnostics
		tell(&diags, "It was not made", refused, func(name string) bool { return known && name == "display_name" })
		at, has := diags[0].(diag.DiagnosticWithPath)
		if len(diags) != 1 || has != known || known && !at.Path().Equal(path.Root("display_name")) {
			t.Errorf("%s: %v", what, diags)
		}
	}
	var diags diag.Diagnostics
	if tell(&diags, "x", nil, nil); len(diags) != 0 {
		t.Errorf("nothing is told as %v", diags)
	}
	if tell(&diags, "x", kept("it stays"), nil); diags.HasError() || diags.WarningsCount() != 1 {
		t.Errorf("what stays is told as %v", diags)
	}
}

func TestTextsAreWrittenAsTheServiceDoes(t *testing.T) {
	for _, c := range []struct {
		check  validator.String
		text   types.String
		passes bool
	}{
		{like(core.ValidateDisplayName), types.StringValue("Shop"), true},
		{like(core.ValidateDisplayName), types.StringValue("Shop "), false},
		{like(core.ValidateDisplayName), types.StringValue(""), false}, {like(core.ValidateDisplayName), types.StringNull(), true},
		{like(core.ValidateDisplayName), types.StringUnknown(), true}, {like(writtenNetwork), types.StringValue("192.0.2.1/32"), true},
		{like(writtenNetwork), types.StringValue("192.0.2.1"), false}, {like(writtenNetwork), types.StringValue("192.0.2.1/24"), false},
		{like(writtenURL), types.StringValue("https://a.example.com/x"), true},
		{like(writtenURL), types.StringValue("https://A.example.com/x"), false},
		{accepted(core.ValidateChosenName), types.StringValue("postgres"), false},
	} {
		var resp validator.StringResponse
		c.check.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("x"), ConfigValue: c.text}, &resp)
		if resp.Diagnostics.HasError() == c.passes {
			t.Errorf("%s: %v", c.text, resp.Diagnostics)
		}
	}
}

// What is asked for is waited for, however often Terraform is told to stop.
func TestAnInterruptionLosesNoAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	got, err := answered(ctx, func(ctx context.Context) (string, error) { return "made", ctx.Err() })
	if got != "made" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := answered(ended, func(ctx context.Context) (string, error) { return "", ctx.Err() }); err == nil {
		t.Error("its time does not end it")
	}
}
