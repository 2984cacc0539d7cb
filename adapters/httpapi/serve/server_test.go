package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// slow adds a route whose handler waits for its context or a signal.
func slow(entered chan<- context.Context, leave <-chan struct{}) func(*Config) {
	return func(c *Config) {
		c.Routes = append(c.Routes, Route{
			Name: "slow", Method: "GET", Path: "/api/v1/slow", Class: ratelimit.Read,
			Work: OK(func(r *Request) (map[string]string, error) {
				entered <- r.Context()
				select {
				case <-leave:
					return map[string]string{}, nil
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}),
		})
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	entered, leave := make(chan context.Context, 1), make(chan struct{})
	st := open(t, slow(entered, leave))
	idle, busy := st.dial(t), st.dial(t)
	idle.say(head("GET", thing, anyKey))
	idle.hear(cutBy)
	busy.say(head("GET", "/api/v1/slow", anyKey))
	<-entered
	done := make(chan error, 1)
	go func() { done <- st.Shutdown(context.Background()) }()
	idle.ended(cutBy)
	if _, err := net.DialTimeout("tcp", st.address, time.Second); err == nil {
		t.Error("a new connection was accepted")
	}
	close(leave)
	if r := busy.hear(cutBy); r.StatusCode != 200 || !r.Close {
		t.Errorf("got %d, close %v", r.StatusCode, r.Close)
	}
	check.NoError(t, <-done, "Shutdown")
}

func TestServeEndsWhereShutdownCameFirst(t *testing.T) {
	st := open(t)
	check.NoError(t, st.Shutdown(context.Background()))
	ln := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- st.Serve(ln) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it serves after its shutdown")
	}
	if _, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second); err == nil {
		t.Error("the listener is open")
	}
}

func TestShutdownCutsWhatOutlivesItsGrace(t *testing.T) {
	entered := make(chan context.Context, 1)
	st := open(t, slow(entered, nil))
	l := st.dial(t)
	l.say(head("GET", "/api/v1/slow", anyKey))
	inside := <-entered
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if err := st.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "1 connections were cut") {
		t.Errorf("Shutdown: %v", err)
	}
	awaits(t, cutBy, inside.Done(), "the request's context ends")
}

func TestHandlersTimeIsBounded(t *testing.T) {
	entered := make(chan context.Context, 1)
	st := open(t, slow(entered, nil), func(c *Config) { c.Limits.HandlerTimeout = 100 * time.Millisecond })
	st.ask(t, head("GET", "/api/v1/slow", anyKey)).expect(t, 500, fault.InternalError)
}

func TestIdleConnectionIsClosed(t *testing.T) {
	st := open(t, func(c *Config) { c.Limits.IdleTimeout = 200 * time.Millisecond })
	l := st.dial(t)
	l.say(head("GET", thing, anyKey))
	l.hear(cutBy)
	l.ended(cutBy)
}

func TestTLS(t *testing.T) {
	certFile, keyFile, roots := selfSigned(t)
	pair := TLS(check.Must(certfile.Open("the API", certFile, keyFile))(t).Certificate)
	st := open(t, func(c *Config) { c.TLS = pair })
	st.size, st.feed = 5<<20, func(*Request) io.ReadCloser { return newSource(5<<20, nil) }
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{thing: 0, backupPath: 5 << 20} {
		req := check.Must(http.NewRequest("GET", "https://"+st.address+path, nil))(t)
		req.Header.Set("Authorization", "Bearer "+anyKey)
		res := check.Must(client.Do(req))(t)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || want > 0 && len(body) != want {
			t.Errorf("%s: %d, %d bytes, %v", path, res.StatusCode, len(body), err)
		}
	}
	big := strings.NewReader(strings.Repeat("x", 4<<20))
	res, err := client.Post("https://"+st.address+thing+"/run", "application/json", big)
	if err != nil {
		t.Fatalf("an early answer over TLS was lost: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("got %d", res.StatusCode)
	}
	stuck := st.dial(t) // never says hello
	stuck.ended(cutBy)
}

func selfSigned(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := check.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := check.Must(x509.MarshalPKCS8PrivateKey(key))(t)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		check.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	roots = x509.NewCertPool()
	cert := check.Must(x509.ParseCertificate(der))(t)
	roots.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private), roots
}
