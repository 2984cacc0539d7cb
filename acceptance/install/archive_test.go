//go:build linux

package install

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// momentIsHadBack clones the customer's database as it was, from the archive that the agent keeps of a PostgreSQL that runs as
// another user.
func momentIsHadBack(t *testing.T, m *machine, customer *shell) {
	t.Helper()
	of := customerOf(t, m, customer)
	shop := check.Must(of.Databases.List().Page(t.Context(), apiclient.Page{}))(t).Data[0]
	customer.run(t, "pgherd admin feature enable clone\npgherd admin enroll --database "+string(shop.ID)+" --route clone")
	run := func(url, query string) string {
		t.Helper()
		out, err := m.customer(t.Context(), url+"&sslrootcert="+m.path(trusted), query).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	url := strings.TrimSpace(customer.run(t, `echo "$url"`))
	run(url, "CREATE TABLE item AS SELECT 1 AS n")
	check.Eventually(t, "there is no window", func() bool {
		w, err := of.Recovery.GetWindow(t.Context(), shop.ID)
		return err == nil && w.From != nil && w.From.Before(time.Now())
	})
	moment := run(url, `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM pg_sleep(0.01)`)
	run(url, "DELETE FROM item")
	begun := check.Must(of.Databases.Clone(t.Context(), shop.ID, wire.CloneDatabase{
		Name: "then", DisplayName: "then", PointInTime: &moment,
	}))(t)
	var done wire.Operation
	check.Eventually(t, "the clone is not made", func() bool {
		done = check.Must(of.Operations.Get(t.Context(), begun.Operation.ID))(t)
		return done.Status.Final()
	})
	if done.Status != "succeeded" {
		t.Fatalf("it is %+v: %+v", done, done.Error)
	}
	if has := run(begun.Database.ConnectionString, "SELECT count(*) FROM item"); has != "1" {
		t.Errorf("the clone has %s items", has)
	}
}

// customerOf calls the API with the key that the page has made.
func customerOf(t *testing.T, m *machine, customer *shell) *apiclient.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(check.Must(os.ReadFile(m.path(trusted)))(t))
	return check.Must(apiclient.New(apiclient.Config{
		URL: "https://localhost:" + m.ports["8443"], Key: strings.TrimSpace(customer.run(t, `echo "$key"`)), Attempts: 1,
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}))(t)
}
