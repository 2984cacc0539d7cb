// Package oidcissuer is a real issuer of OIDC tokens on this machine: over TLS, with a discovery document and a key set.
package oidcissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// Issuer is a running issuer. Its methods may be called while it runs.
type Issuer struct {
	URL string
	CA  []byte // PEM, of its certificate
	// Asked and AskedKeys count the requests of its discovery document and of its keys.
	Asked, AskedKeys atomic.Int64

	server *httptest.Server

	mu     sync.Mutex
	kid    int
	key    any // private
	keys   jose.JSONWebKeySet
	change func(document map[string]any)
	answer http.HandlerFunc
	people people
}

// Start starts an issuer, whose first key is one for ES256. It has a further document, /endless, which never ends.
func Start() *Issuer {
	i := prepared()
	i.server.StartTLS()
	i.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	return i.ready()
}

// StartAt starts one on another address of this machine, with a certificate of an authority in the folder.
func StartAt(dir, host string) (*Issuer, error) {
	ca, err := cluster.OpenCA(dir)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Pair("issuer", host)
	if err != nil {
		return nil, err
	}
	i := prepared()
	if i.CA, err = os.ReadFile(ca.CertFile()); err != nil {
		return nil, err
	}
	_ = i.server.Listener.Close() // of loopback
	if i.server.Listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return nil, err
	}
	i.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	i.server.StartTLS()
	return i.ready(), nil
}

func (i *Issuer) ready() *Issuer {
	i.URL = i.server.URL
	i.Rotate(jose.ES256)
	return i
}

// prepared is one that listens to nobody yet.
func prepared() *Issuer {
	i := &Issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		i.Asked.Add(1)
		i.serve(w, r, i.document)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		i.AskedKeys.Add(1)
		i.serve(w, r, func() any { return i.keys })
	})
	mux.HandleFunc("/token", i.exchange)
	mux.HandleFunc("/userinfo", i.userInfo)
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for err := r.Context().Err(); err == nil; {
			_, err = w.Write(make([]byte, 4<<10))
		}
	})
	i.server = httptest.NewUnstartedServer(mux)
	i.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	return i
}

// Stop ends it; connections are refused from then on.
func (i *Issuer) Stop() {
	i.server.CloseClientConnections()
	i.server.Close()
}

func (i *Issuer) document() any {
	d := map[string]any{
		"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "none"},
		"authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
	}
	if i.change != nil {
		i.change(d)
	}
	return d
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request, document func() any) {
	i.mu.Lock()
	answer, found := i.answer, document()
	i.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found) // whoever asked may have left
}

// Says changes the discovery document from now on; nil for nothing.
func (i *Issuer) Says(change func(document map[string]any)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change = change
}

// Answers has every request answered in another way; nil for the usual one.
func (i *Issuer) Answers(by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = by
}

// Silence takes requests and answers none, until release is called or whoever asks has left.
func (i *Issuer) Silence() (release func()) {
	over := make(chan struct{})
	i.Answers(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	})
	return func() {
		i.Answers(nil)
		close(over)
	}
}

// Rotate signs with a new key from now on, of RS256 or ES256, and publishes that one alone.
func (i *Issuer) Rotate(algorithm jose.SignatureAlgorithm) {
	key, public := newKey(algorithm)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kid++
	i.key = key
	i.keys = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: public, KeyID: i.keyID(), Algorithm: string(algorithm), Use: "sig"},
	}}
}

// Publish puts one more key into the key set.
func (i *Issuer) Publish(key jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys.Keys = append(i.keys.Keys, key)
}

func (i *Issuer) keyID() string { return fmt.Sprintf("key-%d", i.kid) }

func newKey(algorithm jose.SignatureAlgorithm) (private, public any) {
	if algorithm == jose.ES256 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		return key, key.Public()
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	return key, key.Public()
}

func check(err error) {
	if err != nil {
		panic(err) // with these arguments nothing here fails
	}
}

// Key returns the private key that signs, and its name.
func (i *Issuer) Key() (private any, kid string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key, i.keyID()
}

// Token is a token that says so, signed with the key of now.
func (i *Issuer) Token(claims map[string]any) string {
	key, kid := i.Key()
	return Sign(key, kid, claims)
}

// Sign makes a token with a key of the caller's, which may be a secret: then it is an HS256 one.
func Sign(key any, kid string, claims map[string]any) string {
	algorithm := jose.RS256
	switch key.(type) {
	case *ecdsa.PrivateKey:
		algorithm = jose.ES256
	case []byte:
		algorithm = jose.HS256
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	check(err)
	payload, err := json.Marshal(claims)
	check(err)
	signed, err := signer.Sign(payload)
	check(err)
	token, err := signed.CompactSerialize()
	check(err)
	return token
}
