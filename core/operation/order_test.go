package operation

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestWhatOrdersAreAdmitted(t *testing.T) {
	earlier, later := start.Add(-time.Second), start.Add(time.Minute)
	plain, forward := Spec{}, Spec{OnlyForward: true}
	driven := Spec{Driven: func(o Operation) bool { return o.Stage == "ready" }}
	ready := func(at time.Time) Operation {
		return Operation{Status: Running, Stage: "ready", Lease: Lease{NotBefore: at}}
	}
	lost := Order{Reason: "r", ServerGone: true}
	for name, c := range map[string]struct {
		spec        Spec
		o           Operation
		by          Order
		fail, retry bool // are admitted
	}{
		"queued":                    {plain, Operation{Status: Queued}, Order{}, true, true},
		"backing off":               {plain, Operation{Status: Running, Lease: Lease{NotBefore: later}}, Order{}, true, true},
		"under a lease":             {plain, Operation{Status: Running, Lease: Lease{Until: &later}}, lost, false, false},
		"lease over":                {plain, Operation{Status: Running, Lease: Lease{Until: &earlier}}, Order{}, true, true},
		"succeeded":                 {plain, Operation{Status: Succeeded}, lost, false, false},
		"failed":                    {plain, Operation{Status: Failed}, lost, false, false},
		"canceled":                  {plain, Operation{Status: Canceled}, lost, false, false},
		"without a way back":        {forward, Operation{Status: Running}, Order{}, false, true},
		"the same, server gone":     {forward, Operation{Status: Running}, lost, true, true},
		"waiting for callers":       {driven, ready(later), Order{}, true, false},
		"callers stayed away":       {driven, ready(earlier), Order{}, true, true},
		"callers have no part here": {driven, Operation{Status: Running, Lease: Lease{NotBefore: later}}, Order{}, true, true},
	} {
		for what, got := range map[string]struct {
			err  error
			want bool
		}{"fail": {c.spec.AdmitsFail(c.o, c.by, start), c.fail}, "retry": {c.spec.AdmitsRetry(c.o, start), c.retry}} {
			if got.want != (got.err == nil) || got.err != nil && !fault.Has(got.err, fault.DatabaseStateConflict) {
				t.Errorf("%s, %s: %v", name, what, got.err)
			}
		}
	}
}

func TestAnOrderHasAReason(t *testing.T) {
	for reason, admitted := range map[string]bool{
		"": false, "  ": false, "it burned": true, strings.Repeat("x", 300): true, strings.Repeat("x", 301): false, "a\nb": false,
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
