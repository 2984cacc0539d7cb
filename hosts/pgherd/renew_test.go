package main_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Certificates are renewed below running processes, which a SIGHUP tells of it. New connections see the new ones, and none that
// is open ends.
func TestRenewal(t *testing.T) {
	t.Parallel()
	ctx := stacktest.Soon(t)
	s := stacktest.Start(ctx, t, stack.Options{TemplateDir: clustertest.TemplateDir()})
	dir := filepath.Dir(s.CAFile())
	pair := issue(t, dir, "api")
	api := check.Must(s.StartAPI(ctx, "", "--tls-cert-file", pair.CertFile, "--tls-key-file", pair.KeyFile))(t)
	batch := check.Must(s.StartBatch(ctx, ""))(t)
	ways := []wayIn{
		{"api", strings.TrimPrefix(api.URL, "http://"), handshake}, {"agent", strings.TrimPrefix(s.AgentURL(), "https://"), handshake},
		{"pooler", s.PoolerAddress(), startTLS},
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(check.Must(os.ReadFile(s.CAFile()))(t))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	defer client.CloseIdleConnections()
	before := map[string]string{}
	for _, w := range ways {
		before[w.name] = w.serial(t, roots)
	}
	address := ask(t, client, ways[0].address)

	for _, w := range ways {
		check.NoError(t, os.Remove(filepath.Join(dir, w.name+".crt")))
		issue(t, dir, w.name)
	}
	for _, p := range []*stack.Process{api.Process, batch.Process, s.FirstAgent()} {
		check.NoError(t, syscall.Kill(p.Pid(), syscall.SIGHUP))
	}
	for _, w := range ways {
		check.Eventually(t, w.name+" does not serve its new certificate", func() bool { return w.serial(t, roots) != before[w.name] })
	}
	if again := ask(t, client, ways[0].address); again != address {
		t.Error("the API has ended a connection that was open")
	}
	for name, p := range map[string]*stack.Process{"api": api.Process, "batch": batch.Process, "agent": s.FirstAgent()} {
		if !p.Running() {
			t.Errorf("%s has ended at a SIGHUP", name)
		}
	}
	metrics := get(ctx, t, http.DefaultClient, "http://"+api.OpsAddress()+"/metrics")
	if !strings.Contains(metrics, `pgherd_certificate_not_after_timestamp_seconds{of="api"}`) {
		t.Error("the end of the API's certificate is no metric")
	}
}

func issue(t *testing.T, dir, name string) cluster.Certificate {
	t.Helper()
	return check.Must(check.Must(cluster.OpenCA(dir))(t).Issue(name, stack.PublicHost, "127.0.0.1"))(t)
}

// wayIn is a place where a certificate is served.
type wayIn struct {
	name, address string
	begin         func(net.Conn) error // what comes before the handshake
}

func (w wayIn) serial(t *testing.T, roots *x509.CertPool) string {
	t.Helper()
	var dialer net.Dialer
	raw := check.Must(dialer.DialContext(t.Context(), "tcp", w.address))(t)
	defer raw.Close()
	check.NoError(t, w.begin(raw))
	secure := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: stack.PublicHost, MinVersion: tls.VersionTLS12})
	check.NoError(t, secure.HandshakeContext(t.Context()))
	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func handshake(net.Conn) error { return nil }

// startTLS asks PgBouncer for TLS, as a PostgreSQL client does.
func startTLS(c net.Conn) error {
	if _, err := c.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// ask makes a request at the API, and returns the client's address: a new one is a new connection.
func ask(t *testing.T, client *http.Client, host string) (local string) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { local = c.Conn.LocalAddr().String() },
	})
	get(ctx, t, client, "https://"+host+"/api/v1/openapi.json")
	return local
}

func get(ctx context.Context, t *testing.T, client *http.Client, url string) string {
	t.Helper()
	request := check.Must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))(t)
	answer := check.Must(client.Do(request))(t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(url, answer.Status)
	}
	return string(check.Must(io.ReadAll(answer.Body))(t))
}
