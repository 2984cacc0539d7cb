//go:build linux && machines

package install

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

const apiURL, dashboardURL = "https://api.example.com", "https://db.example.com"

// customer calls the API, uses the dashboard and connects to a database, from outside.
type customer struct {
	walk    *walk
	account string
	tls     *tls.Config
	patient *apiclient.Client    // repeats what may be repeated, as svc does
	browser *http.Client         // with a session
	shop    wire.CreatedDatabase // which is backed up
	desk    wire.CreatedDatabase // whose password is changed
}

// newCustomer is whom the page has made an account, a key and a database, in the shell where it has.
func newCustomer(t *testing.T, w *walk) *customer {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(check.Must(os.ReadFile(w.machines["lb"].path(trusted)))(t))
	c := &customer{walk: w, tls: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	said := func(variable string) string {
		return strings.TrimSpace(w.run(t, "pgherd", "api1", `echo "$`+variable+`"`))
	}
	c.account = said("account")
	c.patient = c.client(t, 0)
	c.shop = wire.CreatedDatabase{Database: c.named(t, "shop"), ConnectionString: said("url")}
	c.desk = check.Must(c.patient.Databases.Create(t.Context(), wire.CreateDatabase{Name: "desk", DisplayName: "desk"}))(t)
	if out, err := c.psql(t, "CREATE TABLE held (n int PRIMARY KEY)").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.browser = &http.Client{Jar: check.Must(cookiejar.New(nil))(t), Transport: c.transport(), Timeout: check.Patience}
	link := c.admin(t, "link", "user link --email owner@example.com --dashboard-url "+dashboardURL)
	c.logIn(t, link[strings.LastIndexAny(link, "/=")+1:])
	return c
}

// named is one of the customer's databases, as it is now.
func (c *customer) named(t *testing.T, name string) wire.Database {
	t.Helper()
	for _, one := range check.Must(c.patient.Databases.List().Page(t.Context(), apiclient.Page{}))(t).Data {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("there is no database %s", name)
	return wire.Database{}
}

// admin is a field of what an operator's command says.
func (c *customer) admin(t *testing.T, field, command string) string {
	t.Helper()
	out := c.walk.run(t, "pgherd", "api1", operators+"\npgherd admin "+command+" --json")
	_, rest, found := strings.Cut(out, `"`+field+`"`)
	parts := strings.SplitN(rest, `"`, 3)
	if !found || len(parts) < 3 {
		t.Fatalf("%s says no %s: %s", command, field, out)
	}
	return parts[1]
}

// client is a client with a key of its own, since keys are counted each.
func (c *customer) client(t *testing.T, attempts int) *apiclient.Client {
	t.Helper()
	key := c.admin(t, "apiKey", "key create --account "+c.account+" --label load --scope full")
	return check.Must(apiclient.New(apiclient.Config{
		URL: apiURL, Key: key, HTTP: &http.Client{Transport: c.transport()}, Attempts: attempts, Patience: time.Minute,
	}))(t)
}

// transport has connections of its own, and speaks HTTP/2, as browsers do.
func (c *customer) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: c.tls.Clone(), ForceAttemptHTTP2: true}
}

// logIn uses a link that an operator has made.
func (c *customer) logIn(t *testing.T, token string) {
	t.Helper()
	request := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, dashboardURL+"/link/"+token, nil))(t)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response := check.Must(c.browser.Do(request))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != "/" {
		t.Fatalf("a log-in leads to %s: %s", response.Request.URL.Path, response.Status)
	}
}

func (c *customer) psql(t *testing.T, queries ...string) *exec.Cmd {
	t.Helper()
	return c.walk.machines["lb"].customer(t.Context(), c.url(), queries...)
}

// url leads to the shop where it was made, for somebody who trusts what machines do.
func (c *customer) url() string {
	return c.shop.ConnectionString + "&sslrootcert=" + c.walk.machines["lb"].path(trusted)
}

// holdUp has a backup of the shop wait for a lock, until it is released.
func (c *customer) holdUp(t *testing.T) (release func()) {
	t.Helper()
	session := c.psql(t)
	in, out := check.Must(session.StdinPipe())(t), bufio.NewReader(check.Must(session.StdoutPipe())(t))
	check.NoError(t, session.Start())
	check.Must(io.WriteString(in, "BEGIN;\nLOCK TABLE held;\nSELECT 'locked';\n"))(t)
	for line := ""; !strings.Contains(line, "locked"); {
		var err error
		line, err = out.ReadString('\n')
		check.NoError(t, err, "nothing is locked")
	}
	return func() {
		check.NoError(t, in.Close()) // psql ends, and with it the transaction
		check.NoError(t, session.Wait())
	}
}

// repetition says how often a writer repeats what may be repeated. Who reads does not.
type repetition int

const (
	never repetition = 1
	again repetition = 0 // as often as the client does by itself
)

// load has readers, a writer and somebody with a page open use the service until it is ended; none of their calls may fail.
func (c *customer) load(t *testing.T, writes repetition) (end func()) {
	t.Helper()
	reader, listener, writer := c.client(t, 1), c.client(t, 1), c.client(t, int(writes))
	ctx, stop := context.WithCancel(t.Context())
	var calls calls
	calls.keep(ctx, "reads a database", 200*time.Millisecond, func(ctx context.Context) error {
		_, err := reader.Databases.Get(ctx, c.shop.ID)
		return err
	})
	calls.keep(ctx, "lists databases", 250*time.Millisecond, func(ctx context.Context) error {
		_, err := listener.Databases.List().Page(ctx, apiclient.Page{})
		return err
	})
	calls.keep(ctx, "has a page", 300*time.Millisecond, c.visit)
	labels := []database.Environment{database.Production, database.Staging}
	calls.keep(ctx, "changes a label", 700*time.Millisecond, func(ctx context.Context) error {
		labels[0], labels[1] = labels[1], labels[0]
		_, err := writer.Databases.SetEnvironment(ctx, c.shop.ID, wire.SetEnvironment{Environment: &labels[0]})
		return err
	})
	calls.keep(ctx, "changes a password", 3*time.Second, func(ctx context.Context) error {
		_, err := writer.Logins.Rotate(ctx, c.desk.ID, database.RuntimeLogin, wire.Disconnect{ConfirmDisconnect: true})
		return err
	})
	return func() {
		t.Helper()
		time.Sleep(2 * time.Second) // with what has happened
		stop()
		calls.end(t)
	}
}

// visit reads a page: somebody who is not logged in would be led elsewhere.
func (c *customer) visit(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, dashboardURL+"/", nil)
	if err != nil {
		return err
	}
	response, err := c.browser.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	shown := response.StatusCode == http.StatusOK && response.Request.URL.Path == "/" && strings.Contains(string(page), "shop")
	if err == nil && !shown {
		err = fmt.Errorf("%s at %s", response.Status, response.Request.URL.Path)
	}
	return err
}

// calls are what several callers do at a time.
type calls struct {
	running sync.WaitGroup
	mu      sync.Mutex
	done    map[string]int
	longest map[string]time.Duration
	failed  []string
}

// keep has somebody do something again and again. What is under way when the context ends is let finish.
func (c *calls) keep(ctx context.Context, what string, pause time.Duration, do func(context.Context) error) {
	c.running.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), check.Patience)
			err := do(calling)
			cancel()
			c.note(what, began, err)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

func (c *calls) note(what string, began time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done, c.longest = map[string]int{}, map[string]time.Duration{}
	}
	c.done[what]++
	c.longest[what] = max(c.longest[what], time.Since(began))
	if err != nil {
		c.failed = append(c.failed, fmt.Sprintf("%s, who %s, after %s: %v", began.Format("15:04:05.000"), what, time.Since(began), err))
	}
}

// end fails the test where a call has failed, or somebody did nothing.
func (c *calls) end(t *testing.T) {
	t.Helper()
	c.running.Wait()
	t.Logf("calls %v, the longest %v", c.done, c.longest)
	if len(c.done) != 5 {
		t.Errorf("only %d have called", len(c.done))
	}
	if len(c.failed) > 0 {
		t.Errorf("%d calls failed:\n%s", len(c.failed), strings.Join(c.failed[:min(len(c.failed), 20)], "\n"))
	}
}

// isTold finds the customer's own address in what the hosts log, and never the load balancer's, who calls without a key, where
// its own machine tries whether it works.
func (c *customer) isTold(t *testing.T) {
	t.Helper()
	for _, host := range []string{"pgherd-api", "pgherd-dashboard"} {
		log := string(check.Must(os.ReadFile(c.walk.machines["api1"].path(host + ".log")))(t))
		told := 0
		for line := range strings.Lines(log) {
			known := strings.Contains(line, `"key":"pgh_`) || strings.Contains(line, `"userId":`)
			switch {
			case known && strings.Contains(line, `"client":"`+addresses["customer"]+`"`):
				told++
			case known && strings.Contains(line, `"client":"`+addresses["lb"]+`"`):
				t.Errorf("%s takes the load balancer for who calls: %s", host, line)
			}
		}
		if told == 0 {
			t.Errorf("%s does not log who calls", host)
		}
	}
}
