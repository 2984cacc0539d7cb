package pgbackrest

import (
	"bytes"
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
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/pgherd/pgherd/agent/blob/s3"
)

// proxy stands before an object store while one restore runs, on the loopback interface. It answers for one object, and passes on
// all else, which is signed by who asks: it gives nothing to strangers but that object, which is encrypted.
type proxy struct {
	certificate []byte // PEM: whom to trust
	port        int
	close       func()
}

// newProxy answers for the object with a key, which begins with a slash.
func newProxy(to s3.Config, key string, object []byte) (*proxy, error) {
	target, err := objectURL(to, key)
	if err != nil {
		return nil, err
	}
	transport, err := s3.NewTransport(to)
	if err != nil {
		return nil, err
	}
	pair, certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	own := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", own)
	if err != nil {
		return nil, err
	}
	silent := log.New(io.Discard, "", 0) // what fails, the program says
	through := &httputil.ReverseProxy{
		// The host stays that which was asked for: it is signed.
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		Transport: transport, ErrorLog: silent,
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ErrorLog: silent,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == target.Path {
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(object))
				return
			}
			through.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return &proxy{certificate: certificate, port: listener.Addr().(*net.TCPAddr).Port, close: func() {
		_ = server.Close()
		transport.CloseIdleConnections()
	}}, nil
}

// objectURL is where the store has an object.
func objectURL(to s3.Config, key string) (*url.URL, error) {
	u, err := url.Parse(to.Endpoint)
	if err != nil {
		return nil, err
	}
	if to.PathStyle {
		u.Path = "/" + to.Bucket + key
	} else {
		u.Host, u.Path = to.Bucket+"."+u.Host, key
	}
	return u, nil
}

// selfSigned is a new certificate for this machine, which is its own authority.
func selfSigned() (pair tls.Certificate, certificate []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pgherd"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}), nil
}
