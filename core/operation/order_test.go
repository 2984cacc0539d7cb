package operation

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestWhatOrdersAreAdmitted(t *testing.T) {
	earlier, later := start.Add(-time.Second), start.Add(time.Minute)
	plain := Spec{}
	driven := Spec{Driven: func(o Operation) bool { return o.Stage == "ready" }}
	ready := func(at time.Time) Operation {
		return Operation{Status: Running, Stage: "ready", Lease: Lease{NotBefore: at}}
	}
	for name, c := range map[string]struct {
		spec        Spec
		o           Operation
		fail, retry bool // are admitted
	}{
		"queued":                    {plain, Operation{Status: Queued}, true, true},
		"backing off":               {plain, Operation{Status: Running, Lease: Lease{NotBefore: later}}, true, true},
		"under a lease":             {plain, Operation{Status: Running, Lease: Lease{Until: &later}}, false, false},
		"lease over":                {plain, Operation{Status: Running, Lease: Lease{Until: &earlier}}, true, true},
		"succeeded":                 {plain, Operation{Status: Succeeded}, false, false},
		"failed":                    {plain, Operation{Status: Failed}, false, false},
		"canceled":                  {plain, Operation{Status: Canceled}, false, false},
		"waiting for callers":       {driven, ready(later), true, false},
		"callers stayed away":       {driven, ready(earlier), true, true},
		"callers have no part here": {driven, Operation{Status: Running, Lease: Lease{NotBefore: later}}, true, true},
	} {
		for what, got := range map[string]struct {
			err  error
			want bool
		}{"fail": {c.o.AtRest(start), c.fail}, "retry": {c.spec.AdmitsRetry(c.o, start), c.retry}} {
			if got.want != (got.err == nil) || got.err != nil && !fault.Has(got.err, fault.DatabaseStateConflict) {
				t.Errorf("%s, %s: %v", name, what, got.err)
			}
		}
	}
}

func TestAnOrderHasAReason(t *testing.T) {
	for reason, admitted := range map[string]bool{
		"": false, "  ": false, "it burned": true, strings.Repeat("x", 300): true, strings.Repeat("x", 301): false, "a\nb": false,
		" it burned": false, "it burned" + strings.Repeat("\n", 300): false,
	} {
		if err := (Order{Reason: reason}).Check(); admitted != (err == nil) {
			t.Errorf("%q: %v", reason, err)
		}
	}
	c := Order{By: "ada", Reason: "it burned"}.Cause()
	if c.Code != fault.AgentError || !strings.HasSuffix(c.Message, ": it burned") {
		t.Error(c)
	}
}
