package acceptance

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

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
	script := func(args ...string) (string, error) {
		run := exec.CommandContext(t.Context(), "sh", append([]string{"../docs/preview.sh"}, args...)...)
		run.Env = append(os.Environ(), "PGHERD_BASE_URL="+ci.URL, "PGHERD_CI_KEY="+key.Text)
		out, err := run.CombinedOutput()
		if strings.Contains(string(out), key.Text) {
			t.Errorf("the script shows the key: %s", out)
		}
		return strings.TrimSpace(string(out)), err
	}
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
