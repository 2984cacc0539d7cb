package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// gateWorld is the API's own table before the real use cases: what they and the pipeline do together is the order of checks.
type gateWorld struct {
	*roleWorld
	viewer, stranger string
}

func newGateWorld(t *testing.T) *gateWorld {
	t.Helper()
	w := &gateWorld{roleWorld: newRoleWorld(t)}
	_, w.viewer = w.customer("vera@example.org", account.SelectedDatabases, w.database.ID)
	_, w.stranger = w.customer("mallory@example.org", account.FullAccount)
	for _, r := range rollout.Rules {
		w.grant(r.Feature, true)
		w.enroll(r.Enrolment, true)
	}
	return w
}

func (w *gateWorld) grant(feature string, on bool) {
	w.t.Helper()
	check.NoError(w.t, w.use.Operator.SetFeature(w.t.Context(), feature, on))
}

func (w *gateWorld) enroll(route string, on bool) {
	w.t.Helper()
	check.NoError(w.t, w.store.Update(w.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if on {
			return tx.Switches().Enroll(ctx, w.database.ID, route)
		}
		return tx.Switches().Unenroll(ctx, w.database.ID, route)
	}))
}

// wrong sends a request to a route that is wrong in its header and in its body, too.
func (w *gateWorld) wrong(t *testing.T, route *Route, target id.DatabaseID, key string) reply {
	t.Helper()
	return w.ask(t, head(route.Method, route.at(string(target)), key, "Content-Length: 99999999", "Content-Type: text/plain"))
}

// A closed gate is answered after maintenance, a malformed ID and scope, and before the member's right, header and body. Whether
// it is open shows only to those who see the target.
func TestEveryGateStandsInTheOrderOfChecks(t *testing.T) {
	w := newGateWorld(t)
	for _, route := range Routes(w.use) {
		if strings.Contains(route.Path, "/custom-roles") != (route.Gate == rollout.AdditionalRoles) ||
			strings.Contains(route.Path, "/legacy-roles") != (route.Gate == rollout.LegacyRoles) {
			t.Errorf("%s %s has the gate %q", route.Method, route.Path, route.Gate)
		}
		if route.Gate == "" {
			continue
		}
		t.Run(route.Method+" "+route.Path, func(t *testing.T) {
			rule := rollout.Rules[slices.IndexFunc(rollout.Rules, func(r rollout.Rule) bool { return r.Gate == route.Gate })]
			w.open(t, &route)
			w.grant(rule.Feature, false)
			w.closed(t, &route)
			w.grant(rule.Feature, true)
			if rule.Enrolment != "" {
				w.enroll(rule.Enrolment, false)
				w.closed(t, &route)
				w.enroll(rule.Enrolment, true)
			}
			w.open(t, &route)
		})
	}
}

func (w *gateWorld) closed(t *testing.T, route *Route) {
	t.Helper()
	want := fault.FeatureNotAvailable
	if route.Gate == rollout.AdditionalRoles {
		want = fault.FeatureDisabled
	}
	check.NoError(w.t, w.use.Operator.SetMaintenance(t.Context(), true))
	if r := w.wrong(t, route, w.database.ID, w.key); !strings.Contains(r.text, string(fault.Maintenance)) {
		t.Errorf("in a maintenance window: %d %s", r.StatusCode, r.text)
	}
	check.NoError(w.t, w.use.Operator.SetMaintenance(t.Context(), false))
	w.wrong(t, route, "malformed", w.key).expect(t, 400, fault.ValidationError)
	w.hidden(t, route)
	w.wrong(t, route, w.database.ID, w.key).expect(t, want.Status(), want)
	if route.Key == AnyKey {
		w.wrong(t, route, w.database.ID, w.viewer).expect(t, want.Status(), want)
	}
}

func (w *gateWorld) open(t *testing.T, route *Route) {
	t.Helper()
	w.hidden(t, route)
	if route.Key == AnyKey && route.Action != account.See {
		w.wrong(t, route, w.database.ID, w.viewer).expect(t, 403, fault.Forbidden)
	}
	r := w.wrong(t, route, w.database.ID, w.key)
	if !slices.Contains([]int{400, 413, 415}, r.StatusCode) {
		t.Errorf("the owner: %d %s", r.StatusCode, r.text)
	}
}

// Whatever a body has to confirm is confirmed with true, before the use case hears of the request.
func TestEveryConfirmationIsTrue(t *testing.T) {
	w := newGateWorld(t)
	others := map[string]string{"kind": `"rotate"`, "uploadId": `"` + foreignID + `"`}
	found := 0
	for _, route := range Routes(w.use) {
		if !route.Body.IsJSON() {
			continue
		}
		var members []string
		confirmed := ""
		for _, f := range route.Body.shape.fields {
			value := others[f.name]
			if strings.HasPrefix(f.name, "confirm") {
				confirmed, value = f.name, "false"
			}
			members = append(members, fmt.Sprintf("%q:%s", f.name, value))
		}
		if confirmed == "" {
			continue
		}
		found++
		body := "{" + strings.Join(members, ",") + "}"
		r := w.ask(t, head(route.Method, route.at(string(w.database.ID)), w.key, "Idempotency-Key: k", jsonType,
			fmt.Sprint("Content-Length: ", len(body)))+body)
		if r.expect(t, 400, fault.ValidationError); !strings.Contains(r.text, `"field":"`+confirmed+`"`) {
			t.Errorf("%s %s: %s", route.Method, route.Path, r.text)
		}
	}
	if found < 8 {
		t.Errorf("only %d routes have something to confirm", found)
	}
}

// hidden expects the same bytes for another's database, for one that does not exist, and whatever the gate.
func (w *gateWorld) hidden(t *testing.T, route *Route) {
	t.Helper()
	foreign, missing := w.wrong(t, route, w.database.ID, w.stranger), w.wrong(t, route, foreignID, w.key)
	foreign.expect(t, 404, route.Target.missing)
	if foreign.text != missing.text || strings.Contains(foreign.text, string(route.Gate)) {
		t.Errorf("foreign: %s, missing: %s", foreign.text, missing.text)
	}
}
