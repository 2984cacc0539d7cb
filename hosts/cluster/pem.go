package cluster

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
)

// writePair writes a certificate for all to read and its key for its owner. The key comes first and each file appears whole, so
// that a write cut short leaves a pair that does not match, which is made again.
func writePair(certFile string, certificate []byte, keyFile string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", der, 0o600); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", certificate, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	part := path + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(part, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}
