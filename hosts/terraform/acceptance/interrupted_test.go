package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// relayed has terraform call the service by way of one who is told of each answer before terraform has it.
func (f *folder) relayed(tell func(asked *http.Request, status int, answer []byte)) *httptest.Server {
	f.Helper()
	to := check.Must(url.Parse(f.dev.URL))(f)
	relay := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			answer, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(answer))
			tell(r.Request, r.StatusCode, answer)
			return err
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // whoever asked was killed
	})
	f.Cleanup(relay.Close)
	f.url = relay.URL
	return relay
}

// killed applies, and kills terraform and the provider when the service has answered a request. It returns what the service has
// answered to requests to make something, by their paths.
func (f *folder) killed(at func(path string) bool, args ...string) map[string][]byte {
	f.Helper()
	group, answers := make(chan int, 1), map[string][]byte{}
	relay := f.relayed(func(asked *http.Request, _ int, answer []byte) {
		if asked.Method != http.MethodPost {
			return
		}
		answers[asked.URL.Path] = answer
		if at(asked.URL.Path) {
			check.NoError(f, syscall.Kill(-<-group, syscall.SIGKILL))
		}
	})
	c := f.command(nil, append([]string{"apply", "-auto-approve"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check.NoError(f, c.Start())
	group <- c.Process.Pid
	var ended *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ended) || ended.Exited() {
		f.Fatalf("terraform was not killed: %v", err)
	}
	relay.Close()
	f.url = f.dev.URL
	return answers
}

const orders = `
terraform {
  required_providers {
    pgherd = { source = "pgherd/pgherd" }
  }
}
variable "name" { default = "orders" }
variable "label" { default = "Orders" }
variable "key" { default = "orders 1" }
variable "told" { default = true }
variable "more" { default = false }
resource "pgherd_database" "orders" {
  name                = var.name
  display_name        = var.label
  running             = var.more
  deletion_protection = false
  idempotency_key     = var.key
  password_in_state   = var.told
}
resource "pgherd_role" "reports" {
  for_each         = var.more ? toset(["a"]) : toset([])
  database_id      = pgherd_database.orders.id
  display_name     = "Reports"
  access_profile   = "read_only"
  connection_limit = 2
  idempotency_key  = "reports 1"
}
resource "pgherd_webhook" "hook" {
  for_each        = var.more ? toset(["a"]) : toset([])
  database_id     = pgherd_database.orders.id
  url             = "https://127.0.0.1:9/orders"
  secret_in_state = var.told
  depends_on      = [pgherd_role.reports]
}
`

// isInterrupted has terraform and the provider killed when something was made and no state has it. The next apply takes it by its
// idempotency key, the database with its password.
func (f *folder) isInterrupted() {
	f.Helper()
	const resource = "pgherd_database.orders"
	g := f.beside(orders)
	var made wire.CreatedDatabase
	answers := g.killed(func(path string) bool { return strings.HasSuffix(path, "/lifecycle") }) // it was made, and is stopped
	check.NoError(g, json.Unmarshal(answers["/api/v1/databases"], &made))
	g.told["the password of the orders"] = made.Password
	g.writes("main.tf", strings.Replace(orders, "= var.key", "= null", 1))
	g.fails(nil, `a database called "orders" is there already`, "apply", "-auto-approve")
	g.writes("main.tf", orders)
	g.applies()
	g.plans()
	if is := g.attribute(resource, "id"); is != string(made.ID) || made.ID == "" {
		g.Errorf("another database was made: %q, not %q", is, made.ID)
	}
	if made.Password == "" || g.attribute(resource, "password") != made.Password {
		g.Error("it has another password")
	}

	more := "-var=more=true"
	answers = g.killed(func(path string) bool { return strings.HasSuffix(path, "/custom-roles") }, more)
	var role wire.Role
	check.NoError(g, json.Unmarshal(answers["/api/v1/databases/"+string(made.ID)+"/custom-roles"], &role))
	g.applies(more)
	g.plansWith([]string{more})
	if is := g.attribute(`pgherd_role.reports["a"]`, "id"); is != string(role.RoleID) || role.RoleID == "" {
		g.Errorf("another role was made: %q, not %q", is, role.RoleID)
	}
	g.told["the secret of the orders' webhook"] = g.attribute(`pgherd_webhook.hook["a"]`, "secret")

	g.makesAnother(made.ID, more)
	g.saysNoSecret()
}

// makesAnother replaces the database by one of another name and key: by nothing less. The state is to have no secret of that.
func (f *folder) makesAnother(first id.DatabaseID, more string) {
	f.Helper()
	const spent = "idempotency_key is that of the one which the state has"
	apply := []string{"apply", "-auto-approve", more}
	for says, args := range map[string][][]string{
		spent: {
			{"-replace=pgherd_database.orders"}, {`-replace=pgherd_role.reports["a"]`}, {"-var=name=orders2"},
			{"-refresh=false", "-replace=pgherd_database.orders"},
		},
		"keeps its name": {{"-var=key=orders 2", "-replace=pgherd_database.orders"}, {"-var=key=orders 2", "-var=label=Other"}},
	} {
		for _, more := range args {
			f.fails(nil, says, slices.Concat(apply, more)...)
		}
	}
	f.runsWell("taint", "pgherd_database.orders")
	f.fails(nil, spent, apply...)
	f.fails(nil, "keeps its name", append(apply, "-refresh=false", "-var=key=orders 2")...)
	f.runsWell("untaint", "pgherd_database.orders")
	f.plansWith([]string{more})

	relay := f.relayed(func(asked *http.Request, _ int, answer []byte) {
		var made struct {
			Password string
			Data     struct{ Secret string }
		}
		told := ""
		if asked.Method == http.MethodPost && json.Unmarshal(answer, &made) == nil {
			told = made.Password + made.Data.Secret
		}
		if told != "" {
			f.secrets["what was told by "+asked.URL.Path] = told
		}
	})
	before := len(f.secrets)
	untold := []string{more, "-var=told=false", "-var=name=orders2", "-var=key=orders 2"}
	f.applies(untold...)
	relay.Close()
	f.url = f.dev.URL
	f.plansWith(untold)
	if len(f.secrets) != before+2 {
		f.Error("the service has told no password, or no secret of a webhook")
	}
	second, err := f.api.Databases.Get(f.Context(), id.DatabaseID(f.attribute("pgherd_database.orders", "id")))
	if err != nil || second.ID == first || second.Status != database.Active {
		f.Errorf("the other database is %+v, %v", second, err)
	}
	f.runsWell(append([]string{"destroy", "-auto-approve"}, untold...)...)
	for _, d := range check.Must(f.api.Databases.List().Page(f.Context(), apiclient.Page{}))(f).Data {
		if strings.HasPrefix(d.Name, "orders") {
			f.Errorf("there is %+v", d)
		}
	}
}
