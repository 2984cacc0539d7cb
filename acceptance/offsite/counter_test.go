package offsite

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// counter stands before an object store and counts what is asked of it.
type counter struct {
	config  s3.Config    // to reach the store through it
	writing atomic.Int64 // requests that stores bill as such: PUT, POST, and lists
	reading atomic.Int64
	deletes atomic.Int64
}

func (c *counter) total() int64 { return c.writing.Load() + c.reading.Load() + c.deletes.Load() }

// count stands before the store of a configuration.
func count(t *testing.T, to s3.Config) *counter {
	t.Helper()
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	own := check.Must(ca.Issue("counter", "127.0.0.1"))(t)
	pair := check.Must(tls.LoadX509KeyPair(own.CertFile, own.KeyFile))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(check.Must(os.ReadFile(to.CAFile))(t))
	target := check.Must(url.Parse(to.Endpoint))(t)
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	c := &counter{config: to}
	c.config.Endpoint, c.config.CAFile = "https://"+listener.Addr().String(), ca.CertFile()
	proxy := &httputil.ReverseProxy{
		// The host stays that which was asked for: it is signed.
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 32, DisableCompression: true,
		},
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			c.deletes.Add(1)
		case r.Method == http.MethodHead, r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "":
			c.reading.Add(1)
		default:
			c.writing.Add(1)
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() {
		_ = server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}))
	}()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

// objects is how many objects the archive has.
func (w *world) objects(t *testing.T) (n int) {
	t.Helper()
	check.NoError(t, filepath.WalkDir(w.store.Objects(), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	}))
	return n
}

// asked is what was asked of the store in a while, scaled to a day.
type asked struct {
	writing, reading, deletes int64
	objects                   int
	began                     time.Time
}

func (w *world) askedSoFar(t *testing.T) asked {
	t.Helper()
	return asked{w.counted.writing.Load(), w.counted.reading.Load(), w.counted.deletes.Load(), w.objects(t), time.Now()}
}

// sayDay says what a day would take that is all like the time since then.
func (w *world) sayDay(t *testing.T, what string, before asked) {
	t.Helper()
	now := w.askedSoFar(t)
	days := now.began.Sub(before.began).Hours() / 24
	a := func(n int64) int64 { return int64(float64(n) / days) }
	t.Logf("%s, in a day: %d objects; %d requests that write or list, %d that read, %d deletes", what,
		a(int64(now.objects-before.objects)), a(now.writing-before.writing), a(now.reading-before.reading),
		a(now.deletes-before.deletes))
}
