// Package webhooks runs receivers of webhooks on loopback, of the kinds that the real world has.
package webhooks

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// Received is one request that has arrived.
type Received struct {
	Path   string
	Method string
	Header http.Header
	Body   []byte
	At     time.Time
}

// Receiver is a TLS server on loopback. The first element of the path says how it answers: ok, fail (500), redirect, hang
// (nothing until the sender leaves), endless (a body without end) or reset. Set changes the answer for one path.
type Receiver struct {
	// URL has no path. CAFile is what a sender has to trust.
	URL, CAFile string

	server *http.Server

	mu       sync.Mutex
	received map[string][]Received
	answers  map[string]string
}

// Listen starts a receiver with a certificate of an authority in the folder.
func Listen(dir string) (*Receiver, error) { return ListenAt(dir, "127.0.0.1") }

// ListenAt does so on another address of this machine.
func ListenAt(dir, host string) (*Receiver, error) {
	ca, err := cluster.OpenCA(dir)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Pair("receiver", host)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", host+":0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	r := &Receiver{
		URL: "https://" + listener.Addr().String(), CAFile: filepath.Clean(ca.CertFile()),
		received: map[string][]Received{}, answers: map[string]string{},
	}
	r.server = &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // ends with Close
	return r, nil
}

// Close ends the receiver with all its connections.
func (r *Receiver) Close() error { return r.server.Close() }

// Set makes the receiver answer to a path as kind says from now on.
func (r *Receiver) Set(path, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[path] = kind
}

// At returns what has arrived at a path, oldest first.
func (r *Receiver) At(path string) []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.received[path]...)
}

// Every calls fn for each request that has arrived, in no order.
func (r *Receiver) Every(fn func(Received)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.received {
		for _, one := range list {
			fn(one)
		}
	}
}

// Forget drops what has arrived.
func (r *Receiver) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.received)
}

// ServeHTTP records the request, then answers.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender has left; nothing has arrived
	}
	kind := r.record(Received{Path: req.URL.Path, Method: req.Method, Header: req.Header, Body: body, At: at})
	switch kind {
	case "fail":
		w.WriteHeader(http.StatusInternalServerError)
	case "redirect":
		http.Redirect(w, req, r.URL+"/ok/redirected", http.StatusTemporaryRedirect)
	case "hang":
		<-req.Context().Done()
	case "endless":
		endless(w)
	case "reset":
		reset(w)
	}
}

// record keeps the request and returns how to answer it.
func (r *Receiver) record(one Received) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received[one.Path] = append(r.received[one.Path], one)
	if kind, ok := r.answers[one.Path]; ok {
		return kind
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(one.Path, "/"), "/")
	return kind
}

func endless(w http.ResponseWriter) {
	var err error
	for piece := make([]byte, 4096); err == nil; {
		_, err = w.Write(piece)
	}
}

// reset ends the connection as a crashed host does.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return
	}
	if plain, ok := secured.NetConn().(*net.TCPConn); ok {
		_ = plain.SetLinger(0) // without it, the end would be an orderly one
		_ = plain.Close()
	}
}
