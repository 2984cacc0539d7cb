//go:build linux

package soak

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
)

// What a plan can have done is known how to do, in each of its ways, and nothing else is.
func TestEveryCapabilityHasItsDeed(t *testing.T) {
	for _, c := range plan.Catalog {
		for _, way := range []plan.Way{plan.API, plan.Dashboard, plan.Svc, plan.Operator, plan.SQL} {
			if _, planned := c.Ways[way]; planned != deeds[c.Do].by(way) {
				t.Errorf("%s by %s: in plans is %t, and known how to is %t", c.Do, way, planned, !planned)
			}
		}
	}
	if len(deeds) != len(plan.Catalog) {
		t.Errorf("%d deeds for %d capabilities", len(deeds), len(plan.Catalog))
	}
}

func TestWhatACommandSays(t *testing.T) {
	for _, c := range []struct {
		said commandError
		want model.Outcome
	}{
		{commandError{svcName, nil, 1, "svc: DATABASE_STATE_CONFLICT: it is stopped"}, model.Refused},
		{commandError{svcName, nil, 1, "svc: AGENT_ERROR: the server is away"}, model.Unknown},
		{commandError{svcName, nil, 3, "svc: the API cannot be reached"}, model.Unknown},
		{commandError{adminName, nil, 1, "pgherd admin: BACKUP_NOT_FOUND: none"}, model.Unknown},
	} {
		if got := c.said.outcome(); got != c.want {
			t.Errorf("%s is %s, want %s", c.said.said, got, c.want)
		}
	}
	if misuse := (&commandError{svcName, nil, 2, "svc: there is no flag --nosuch"}); !misuse.misused() {
		t.Error("a wrong flag is no misuse")
	}
}
