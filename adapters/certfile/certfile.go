// Package certfile follows certificates in files that are renewed while a program runs.
package certfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
	return open(&Files{name: name, cert: certFile, key: keyFile, readKey: os.ReadFile})
}

// OpenForeign follows a pair that another program reads itself. Only that may be able to read the key: then it is enough to see
// when the key's file changes, and whether they fit is not known.
func OpenForeign(name, certFile, keyFile string) (*Files, error) {
	return open(&Files{name: name, cert: certFile, key: keyFile, readKey: textOrVersion})
}

func open(f *Files) (*Files, error) {
	if _, err := f.Renew(); err != nil {
		return nil, err
	}
	return f, nil
}

// textOrVersion is what a file holds or, where this process must not read it, its version.
func textOrVersion(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return version(path)
	}
	return text, err
}

// unread begins the version of a file that is not read.
const unread = "unread "

// version is what distinguishes a file from what it was before.
func version(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return fmt.Append([]byte(unread), info.ModTime().UnixNano(), info.Size()), nil
}

// pairOf makes a pair of what the files hold. An error names the file that is wrong, and what to do.
func (f *Files) pairOf(cert, key []byte) (pair tls.Certificate, err error) {
	leaf := block(cert, "CERTIFICATE")
	if leaf == nil {
		return pair, fmt.Errorf("%s holds no certificate in PEM: give the file of the certificate, with those between it and its "+
			"authority below it", f.cert)
	}
	if bytes.HasPrefix(key, []byte(unread)) {
		if pair.Leaf, err = x509.ParseCertificate(leaf); err != nil {
			return pair, fmt.Errorf("%s cannot be read as a certificate: %w", f.cert, err)
		}
		return pair, nil
	}
	if block(key, "PRIVATE KEY") == nil {
		return pair, fmt.Errorf("%s holds no private key in PEM: give the file of the key that %s was made for", f.key, f.cert)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		return pair, fmt.Errorf("%s and %s do not fit together: give the key that the certificate was made for (%w)", f.cert, f.key,
			err)
	}
	return pair, nil
}

// block is the first block of PEM whose type ends so; nil where there is none.
func block(text []byte, kind string) []byte {
	for {
		one, rest := pem.Decode(text)
		if one == nil {
			return nil
		}
		if strings.HasSuffix(one.Type, kind) {
			return one.Bytes
		}
		text = rest
	}
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
		return false, fmt.Errorf("the certificate of %s cannot be read: %w; give its file, and let this program's user read it", f.name,
			err)
	}
	if old := f.used.Load(); old != nil && bytes.Equal(old.cert, cert) && bytes.Equal(old.key, key) {
		return false, nil
	}
	pair, err := f.pairOf(cert, key)
	if err != nil {
		return false, err
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
