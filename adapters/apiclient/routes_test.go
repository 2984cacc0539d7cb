package apiclient_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/core/controlplane"
)

// Every route has a call, and every call has a route, which it gives the body and the key that the route wants.
func TestEveryRouteHasACall(t *testing.T) {
	var last *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	client := check.Must(apiclient.New(apiclient.Config{URL: server.URL, Attempts: 1}))(t)
	called := map[string]bool{}
	eachCall(t.Context(), client, func(name string, run func()) {
		last = nil
		run()
		if last == nil {
			t.Fatalf("%s sends nothing", name)
		}
		r := routeOf(t, name, last)
		called[r.Name] = true
		if r.Body.IsJSON() != (last.Header.Get("Content-Type") == "application/json") {
			t.Errorf("%s: has the body that %s takes: false", name, r.Name)
		}
		if (r.Idempotency != httpapi.Absent) != (last.Header.Get("Idempotency-Key") != "") {
			t.Errorf("%s: has the key that %s takes: false", name, r.Name)
		}
	})
	for _, r := range httpapi.Routes(&controlplane.ControlPlane{}) {
		if !called[r.Name] {
			t.Errorf("no call of the client uses %s", r.Name)
		}
	}
}

// A POST without a key is sent again only where that does nothing twice, or is what the API wants.
func TestWhichPostsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &busyServer{}
		client := check.Must(apiclient.New(apiclient.Config{URL: "http://test", HTTP: &http.Client{Transport: busy}, Attempts: 2}))(t)
		again := map[string]bool{}
		eachCall(t.Context(), client, func(name string, run func()) {
			busy.asked = nil
			run()
			r := busy.asked[0]
			if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" && len(busy.asked) > 1 {
				again[routeOf(t, name, r).Name] = true
			}
		})
		want := []string{
			"admitLegacyRole", "admitRole", "advanceManagedRestore", "continueLegacyRoleChange", "continueRoleChange", "createPreview",
			"deleteRole", "optInLegacyRoles", "prepareLegacyRole", "prepareRole", "reconcileLegacyRole", "recoverDatabase",
			"revealLegacyRole", "revealLogin", "revealRole",
		}
		if got := slices.Sorted(maps.Keys(again)); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// busyServer asks everybody to come back.
type busyServer struct{ asked []*http.Request }

func (b *busyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.asked = append(b.asked, r)
	body := io.NopCloser(strings.NewReader(`{"error":{"code":"SERVER_BUSY","message":"m","details":[]}}`))
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: body}, nil
}

func routeOf(t *testing.T, call string, r *http.Request) httpapi.Route {
	t.Helper()
	for _, route := range httpapi.Routes(&controlplane.ControlPlane{}) {
		same := func(pattern, segment string) bool { return pattern == segment || strings.HasPrefix(pattern, "{") }
		if route.Method == r.Method && slices.EqualFunc(strings.Split(route.Path, "/"), strings.Split(r.URL.Path, "/"), same) {
			return route
		}
	}
	t.Fatalf("%s asks for %s %s, which is no route", call, r.Method, r.URL.Path)
	return httpapi.Route{}
}

// eachCall makes every call of every group, with some text for each parameter.
func eachCall(ctx context.Context, client *apiclient.Client, do func(name string, run func())) {
	groups := reflect.ValueOf(client.Calls)
	for i := range groups.NumField() {
		group := groups.Field(i)
		for m := range group.NumMethod() {
			method := group.Method(m)
			do(groups.Type().Field(i).Name+"."+group.Type().Method(m).Name, func() { call(ctx, method) })
		}
	}
}

func call(ctx context.Context, method reflect.Value) {
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < method.Type().NumIn()-1; i++ { // the last ones are options
		argument := reflect.New(method.Type().In(i)).Elem()
		if argument.Kind() == reflect.String {
			argument.SetString("x")
		}
		arguments = append(arguments, argument)
	}
	if result := method.Call(arguments)[0]; result.Kind() == reflect.Func { // an iterator
		for range result.Seq2() {
			break
		}
	}
}
