package apiclient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// hear makes a client of a server that answers as told.
func hear(t *testing.T, c Config, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return check.Must(New(c))(t)
}

const theKey = "pgh_a-key-that-nobody-may-see"

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"no URL":          {},
		"no absolute URL": {URL: "/api"},
		"no valid URL":    {URL: "https://a:" + theKey + "@exa mple.com"},
		"another scheme":  {URL: "ftp://example.com"},
		"with a password": {URL: "https://a:b@example.com"},
		"with a query":    {URL: "https://example.com?x=1"},
		"with a fragment": {URL: "https://example.com#x"},
		"a key of two":    {URL: "https://example.com", Key: theKey + "\nX: y"},
		"negative":        {URL: "https://example.com", Attempts: -1},
	} {
		if _, err := New(c); err == nil || strings.Contains(err.Error(), theKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Neither a dump of a client nor any of its errors shows the key.
func TestKeyStaysHidden(t *testing.T) {
	client := hear(t, Config{Key: theKey, Attempts: 1}, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+theKey {
			t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
		}
		panic(http.ErrAbortHandler)
	})
	_, err := client.Databases.Get(t.Context(), "d")
	if err == nil {
		t.Fatal("there was an answer")
	}
	for _, text := range []string{
		err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%+v", client), fmt.Sprintf("%#v", *client), fmt.Sprintf("%v", client.Roles),
	} {
		if strings.Contains(text, theKey) {
			t.Errorf("it shows the key: %s", text)
		}
	}
}

func TestKeyOfTheRequestComesFirst(t *testing.T) {
	var got []string
	client := hear(t, Config{Key: theKey}, func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	})
	for _, header := range []http.Header{nil, {"Authorization": {"Basic x"}}} {
		check.Must(client.Do(t.Context(), Request{Method: "GET", Path: "/", Header: header}))(t)
	}
	if want := []string{"Bearer " + theKey, "Basic x"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
}

// A parameter cannot make a path another one.
func TestParametersStayInTheirPlace(t *testing.T) {
	var path string
	client := hear(t, Config{Attempts: 1}, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		w.WriteHeader(http.StatusNoContent)
	})
	for parameter, want := range map[string]string{
		"..": "", ".": "", "": "",
		"../..":  "/api/v1/webhooks/..%2F..",
		"a/b?c#": "/api/v1/webhooks/a%2Fb%3Fc%23",
		"%2F":    "/api/v1/webhooks/%252F",
	} {
		path = ""
		err := tell(t.Context(), client, remove("/webhooks/%s", parameter), nil)
		if path != want || (want == "") != (err != nil) {
			t.Errorf("%q: requested %q: %v", parameter, path, err)
		}
	}
}

func TestKeyIsMadeWhereNoneIsGiven(t *testing.T) {
	var got []string
	client := hear(t, Config{Attempts: 1}, func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Idempotency-Key"))
	})
	for _, opts := range [][]Option{nil, {IdempotencyKey("mine")}, {IdempotencyKey("")}} {
		check.NoError(t, tell(t.Context(), client, post(nil, "/x").withKey(), opts))
	}
	if len(got[0]) != 32 || got[1] != "mine" || got[2] != "" {
		t.Errorf("got %q", got)
	}
	opts := []Option{IdempotencyKey("a\nb")}
	if err := tell(t.Context(), client, post(nil, "/x").withKey(), opts); err == nil || len(got) != 3 {
		t.Errorf("a key of two lines is sent: %v", err)
	}
}

func TestResponseIsKept(t *testing.T) {
	client := hear(t, Config{Attempts: 1}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"roleId":"r"}`)
	})
	var kept Response
	setup, err := client.Roles.Prepare(t.Context(), "d", "r", KeepResponse(&kept))
	if err != nil || setup.RoleID != "r" || kept.Status != 202 || kept.Header.Get("X-Request-Id") != "r1" ||
		string(kept.Body) != `{"roleId":"r"}` {
		t.Errorf("%+v %+v %v", setup, kept, err)
	}
}

func TestAnswerOfSomebodyElse(t *testing.T) {
	client := hear(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Log in first") })
	if _, err := client.Databases.Get(t.Context(), "d"); err == nil {
		t.Error("a page of HTML is taken for a database")
	}
}
