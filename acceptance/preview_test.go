package acceptance

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// TestTheWorkflowOfThePage does what the workflow of docs/previews.md does, with the script that the page names, on the real
// service.
func TestTheWorkflowOfThePage(t *testing.T) {
	t.Parallel()
	page := contents(t, "../docs/previews.md")
	for _, step := range []string{
		`url=$(sh ci/preview.sh open "pull/${{ github.event.number }}")`, `sh ci/preview.sh close "pull/${{ github.event.number }}"`,
	} {
		if !strings.Contains(page, step) {
			t.Errorf("the page does not say %s", step)
		}
	}
	w := driver.Stack(t)
	of := check.Must(w.Operator.NewAccount("pro"))(t)
	key := check.Must(w.Operator.NewCIKey(of))(t)
	ci := w.Hosts[0](key.Text)
	script := func(args ...string) (string, error) { return previewScript(t, ci.URL, key.Text, args...) }
	first := check.Must(script("open", "pull/17"))(t)
	login := func() spec.Login {
		u := check.Must(url.Parse(first))(t)
		password, _ := u.User.Password()
		return spec.Login{
			Database: strings.TrimPrefix(u.Path, "/"), Username: u.User.Username(), Password: password, From: spec.Home,
		}
	}
	session := check.Must(w.Connect(login()))(t)
	session.Close()
	if again := check.Must(script("open", "pull/17"))(t); again != first {
		t.Errorf("the second job got %s", again)
	}
	made := check.Must(ci.Previews.Create(t.Context(), wire.CreatePreview{Ref: "pull/17"}))(t).Data
	for range 2 {
		check.Must(script("close", "pull/17"))(t)
	}
	check.Eventually(t, "the preview is not deleted", func() bool {
		return check.Must(ci.Previews.Get(t.Context(), made.DatabaseID))(t).LeaseStatus == "deleted"
	})
	for _, bad := range [][]string{{"open"}, {"open", `a"b`}, {"keep", "pull/17"}} {
		if out, err := script(bad...); err == nil || out == "" {
			t.Errorf("%v: %q, %v", bad, out, err)
		}
	}
	account := w.Hosts[0](check.Must(w.Operator.NewKey(of))(t).Text)
	if left := check.Must(account.Databases.List(t.Context(), apiclient.Page{}))(t).Data; len(left) > 0 {
		t.Errorf("there are %+v", left)
	}
}

// previewScript runs the script of docs/previews.md, and returns what it says.
func previewScript(t *testing.T, url, key string, args ...string) (string, error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "sh", append([]string{"../docs/preview.sh"}, args...)...)
	run.Env = append(os.Environ(), "PGHERD_BASE_URL="+url, "PGHERD_CI_KEY="+key)
	out, err := run.CombinedOutput()
	if strings.Contains(string(out), key) {
		t.Errorf("the script shows the key: %s", out)
	}
	return strings.TrimSpace(string(out)), err
}

// answer is one of a service that is busy, or away, at first.
type answer struct {
	status int
	body   string
}

const (
	previewMade = `{"data":{"databaseId":"5d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f"},"connection":{"connectionString":"postgres://it"}}`
	previewGone = `{"message":"m","data":{"databaseId":"5d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f"}}`
	tooMany     = `{"error":{"code":"RATE_LIMITED","message":"too many create requests with this key"}}`
	broken      = `{"error":{"code":"INTERNAL_ERROR","message":"retry the same request"}}`
	refusing    = `{"error":{"code":"PREVIEW_CONFLICT","message":"the ref has a preview that is no longer active"}}`
)

// Answers that ask for another attempt get one, not before their Retry-After, and what came before the last one is no part of
// what the script says.
func TestTheScriptOfThePageIsPatient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers  []answer
		do, says string
		fails    bool
	}{
		"open, too many": {[]answer{{429, tooMany}, {201, previewMade}}, "open", "postgres://it", false},
		"open, broken":   {[]answer{{500, broken}, {503, broken}, {200, previewMade}}, "open", "postgres://it", false},
		"close, too many": {
			[]answer{{429, tooMany}, {200, previewMade}, {429, tooMany}, {202, previewGone}}, "close", "", false,
		},
		"open, refused":           {[]answer{{429, tooMany}, {409, refusing}}, "open", "409 " + refusing, true},
		"open, a page of a proxy": {[]answer{{502, "<h1>Bad\ngateway"}, {201, previewMade}}, "open", "postgres://it", false},
		"close, gone":             {[]answer{{200, previewMade}, {404, broken}}, "close", "404 " + broken, true},
		"close, ended":            {[]answer{{429, tooMany}, {409, refusing}}, "close", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var asked []string
			var last time.Time
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				n := len(asked)
				asked = append(asked, r.Method+" "+r.URL.Path)
				if n >= len(c.answers) || r.Header.Get("Authorization") != "Bearer pghci_key" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				if n > 0 && c.answers[n-1].status >= 429 && time.Since(last) < time.Second {
					t.Errorf("it did not wait: %v", asked)
				}
				last = time.Now()
				w.Header().Set("Content-Type", "application/json")
				if c.answers[n].status >= 429 {
					w.Header().Set("Retry-After", "1")
				}
				w.WriteHeader(c.answers[n].status)
				_, _ = w.Write([]byte(c.answers[n].body))
			}))
			defer host.Close()
			said, err := previewScript(t, host.URL, "pghci_key", c.do, "pull/17")
			if said != c.says || (err != nil) != c.fails || len(asked) != len(c.answers) {
				t.Errorf("it says %q, %v, after %v", said, err, asked)
			}
		})
	}
}
