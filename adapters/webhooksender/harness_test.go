package webhooksender

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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

const receiverName = "receiver.example.com"

// authority signs the certificates of receivers.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

var newAuthority = sync.OnceValue(func() *authority {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return &authority{key, must(x509.ParseCertificate(der)), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
})

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// issue makes a certificate for the loopback addresses and a name, until the given time.
func (a *authority) issue(name string, until time.Time) tls.Certificate {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

var goodCertificate = sync.OnceValue(func() tls.Certificate {
	return newAuthority().issue(receiverName, time.Now().Add(time.Hour))
})

// receiver is a TLS server on loopback that counts connections and requests.
type receiver struct {
	*httptest.Server
	conns    atomic.Int64
	requests atomic.Int64
}

func receive(t testing.TB, config *tls.Config, handler http.HandlerFunc) *receiver {
	t.Helper()
	if config == nil {
		config = &tls.Config{Certificates: []tls.Certificate{goodCertificate()}}
	}
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		handler(w, req)
	}))
	r.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			r.conns.Add(1)
		}
	}
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.TLS = config
	r.StartTLS()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// named is the receiver's URL under its name; names resolves it.
func (r *receiver) named() string {
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	return "https://" + receiverName + ":" + port + "/hook"
}

// names is a resolver with answers of its own, one after the other; the last one stays.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	queue := n.answers[host]
	if len(queue) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(queue) > 1 {
		n.answers[host] = queue[1:]
	}
	return queue[0], nil
}

func addresses(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func newSender(t testing.TB, o Options) *Sender {
	t.Helper()
	if o.ExtraCA == nil {
		o.ExtraCA = newAuthority().pem
	}
	return check.Must(New(o))(t)
}

// local is a sender that may reach receivers on loopback.
func local(t testing.TB, timeout time.Duration) *Sender {
	return newSender(t, Options{
		Policy: webhook.Policy{AllowPrivate: true}, Timeout: timeout,
		Resolver: &names{answers: map[string][][]netip.Addr{receiverName: {addresses("127.0.0.1")}}},
	})
}

func request(url string) ports.WebhookRequest {
	return ports.WebhookRequest{
		URL: url, Secret: "whsec_senderssecretsenderssecretsender", EventID: "5b6962dd-3f90-4c93-8f61-eabfa4a803e2",
		Body: []byte(`{"a":1}`), At: time.Unix(1767605400, 0),
	}
}

func sendTo(t testing.TB, s *Sender, url string) webhook.Outcome {
	t.Helper()
	return check.Must(s.Send(t.Context(), request(url)))(t)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// raw takes the connection over after the request was read.
func raw(do func(conn net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		do(conn)
	}
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*tls.Conn).NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// silent reads the request and says nothing until the sender is gone.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// strangerPair is a certificate of nobody.
func strangerPair() (certificate, key []byte) {
	k := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), DNSNames: []string{receiverName}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k))
	private := must(x509.MarshalPKCS8PrivateKey(k))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
