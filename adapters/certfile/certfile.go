// Package certfile follows certificates in files that are renewed while a program runs.
package certfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Every is how often hosts look at files: a renewed certificate is used well within a minute.
const Every = 10 * time.Second

// Files is a certificate chain and its key, in two PEM files.
type Files struct {
	name      string
	cert, key string
	readKey   func(path string) ([]byte, error)
	load      func(cert, key []byte) (tls.Certificate, error)
	used      atomic.Pointer[used]

	mu        sync.Mutex
	complaint string // the last trouble that was logged
}

// used is a pair that loads, and what it was made of.
type used struct {
	pair      tls.Certificate
	cert, key []byte
}

// Open reads a pair that this program serves. name says in errors, logs and metrics whose it is.
func Open(name, certFile, keyFile string) (*Files, error) {
	return open(&Files{name: name, cert: certFile, key: keyFile, readKey: os.ReadFile, load: tls.X509KeyPair})
}

// OpenForeign follows a pair that another program reads itself. Only that may be able to read the key: of this file it is enough
// to see when it changes.
func OpenForeign(name, certFile, keyFile string) (*Files, error) {
	return open(&Files{name: name, cert: certFile, key: keyFile, readKey: version, load: leafOnly})
}

func open(f *Files) (*Files, error) {
	if _, err := f.Renew(); err != nil {
		return nil, err
	}
	return f, nil
}

// version is what distinguishes a file from what it was before.
func version(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return fmt.Append(nil, info.ModTime().UnixNano(), info.Size()), nil
}

func leafOnly(cert, _ []byte) (pair tls.Certificate, err error) {
	block, _ := pem.Decode(cert)
	if block == nil || block.Type != "CERTIFICATE" {
		return pair, errors.New("it does not begin with a certificate in PEM")
	}
	pair.Leaf, err = x509.ParseCertificate(block.Bytes)
	return pair, err
}

// Name says whose the certificate is.
func (f *Files) Name() string { return f.name }

// Certificate is for tls.Config.GetCertificate: the newest pair that loads. It does not fail.
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &f.used.Load().pair, nil
}

// NotAfter is when the newest certificate that loads ends.
func (f *Files) NotAfter() time.Time { return f.used.Load().pair.Leaf.NotAfter }

// Renew reads the files again and reports whether they hold another pair than before. A pair that does not load leaves the former
// one in place: who renews writes one file after the other.
func (f *Files) Renew() (changed bool, err error) {
	cert, err := os.ReadFile(f.cert)
	var key []byte
	if err == nil {
		key, err = f.readKey(f.key)
	}
	if err != nil {
		return false, fmt.Errorf("the certificate of %s cannot be read: %w", f.name, err)
	}
	if old := f.used.Load(); old != nil && bytes.Equal(old.cert, cert) && bytes.Equal(old.key, key) {
		return false, nil
	}
	pair, err := f.load(cert, key)
	if err != nil {
		return false, fmt.Errorf("the certificate of %s, in %s with its key in %s: %w", f.name, f.cert, f.key, err)
	}
	f.used.Store(&used{pair: pair, cert: cert, key: key})
	return true, nil
}

// Look renews and reports whether the pair is a new one. It logs that, and trouble when it begins, not at each look.
func (f *Files) Look(log *zap.Logger) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.Renew()
	switch {
	case err != nil && err.Error() != f.complaint:
		log.Warn("a renewed certificate cannot be used; the former one still is", zap.String("of", f.name),
			zap.Time("notAfter", f.NotAfter()), zap.Error(err))
	case changed:
		log.Info("a renewed certificate is used", zap.String("of", f.name), zap.Time("notAfter", f.NotAfter()))
	}
	f.complaint = ""
	if err != nil {
		f.complaint = err.Error()
	}
	return changed
}
