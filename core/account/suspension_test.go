package account

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestSuspension(t *testing.T) {
	now := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)
	since := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		was, want Suspension
	}{
		"an account that is served": {Suspension{}, Suspension{&now, "abuse"}},
		"a suspended one":           {Suspension{&since, "unpaid"}, Suspension{&since, "unpaid"}},
	} {
		got := c.was.Suspend("abuse", now)
		if !got.Suspended() || !got.SuspendedAt.Equal(*c.want.SuspendedAt) || got.SuspendedFor != c.want.SuspendedFor {
			t.Errorf("%s: %+v", name, got)
		}
		if err := got.Served(); !fault.Has(err, fault.AccountSuspended) || !strings.Contains(err.Error(), c.want.SuspendedFor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if none := (Suspension{}); none.Suspended() || none.Served() != nil {
		t.Errorf("%+v is no suspension: %v", none, none.Served())
	}
}
