package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// CA is a certificate authority in a folder: ca.crt and ca.key, and a pair of files for each certificate it issued.
type CA struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate names the files of a server's certificate and key. Both belong to the user that children run as; the key has
// mode 0600.
type Certificate struct{ CertFile, KeyFile string }

const (
	caLife     = 10 * 365 * 24 * time.Hour
	serverLife = 2 * 365 * 24 * time.Hour
	// renewBefore is what must be left of a certificate's life for it to be used again.
	renewBefore = 30 * 24 * time.Hour
)

// OpenCA reads the authority in a folder, or makes it: the folder keeps its authority over restarts, so that clients can keep
// ca.crt. It is made anew only when it is about to end.
func OpenCA(dir string) (*CA, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ca := &CA{dir: dir}
	err := ca.load()
	if err == nil {
		return ca, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errRenew) {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	return ca, ca.make()
}

var errRenew = errors.New("certificate is about to end")

// CertFile is what clients trust.
func (ca *CA) CertFile() string { return filepath.Join(ca.dir, "ca.crt") }

func (ca *CA) load() error {
	pair, err := tls.LoadX509KeyPair(ca.CertFile(), filepath.Join(ca.dir, "ca.key"))
	if err != nil {
		return err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return errors.New("ca.key is no ECDSA key")
	}
	if time.Now().Add(renewBefore).After(pair.Leaf.NotAfter) {
		return errRenew
	}
	ca.certificate, ca.key = pair.Leaf, key
	return nil
}

func (ca *CA) make() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := certificateFor("pgherd CA", caLife)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	ca.key = key
	if ca.certificate, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	return writePair(ca.CertFile(), der, filepath.Join(ca.dir, "ca.key"), key)
}

// Issue returns a server certificate for host names and addresses, in the files name.crt and name.key. One that is there already
// is used again when it is of this authority, for these hosts, and not about to end.
func (ca *CA) Issue(name string, hosts ...string) (Certificate, error) {
	files, err := ca.IssueOwn(name, hosts...)
	if err != nil {
		return files, err
	}
	return files, Own(files.CertFile, files.KeyFile)
}

// IssueOwn is Issue for files that stay the caller's.
func (ca *CA) IssueOwn(name string, hosts ...string) (Certificate, error) {
	files := Certificate{filepath.Join(ca.dir, name+".crt"), filepath.Join(ca.dir, name+".key")}
	if ca.stillGood(files, hosts) {
		return files, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, err
	}
	template, err := certificateFor(name, serverLife)
	if err != nil {
		return files, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = splitHosts(hosts)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key)
	if err != nil {
		return files, err
	}
	return files, writePair(files.CertFile, der, files.KeyFile, key)
}

// Pair is the certificate of Issue with its key, for who serves TLS in this process.
func (ca *CA) Pair(name string, hosts ...string) (tls.Certificate, error) {
	files, err := ca.Issue(name, hosts...)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
}

// Issued reports whether a certificate in PEM is one of this authority's.
func (ca *CA) Issued(text []byte) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && certificate.CheckSignatureFrom(ca.certificate) == nil
}

func (ca *CA) stillGood(files Certificate, hosts []string) bool {
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil || pair.Leaf.CheckSignatureFrom(ca.certificate) != nil {
		return false
	}
	names, addresses := splitHosts(hosts)
	return slices.Equal(names, pair.Leaf.DNSNames) &&
		slices.EqualFunc(addresses, pair.Leaf.IPAddresses, net.IP.Equal) &&
		time.Now().Add(renewBefore).Before(pair.Leaf.NotAfter)
}

func splitHosts(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			addresses = append(addresses, address)
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}

// serialBits is what RFC 5280 leaves room for, with bits to spare for the sign.
const serialBits = 128

func certificateFor(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour), // Clocks differ.
		NotAfter:     time.Now().Add(life),
	}, nil
}
