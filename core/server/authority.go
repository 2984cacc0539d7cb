package server

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// The record of a server has the certificates by which its agent is known: of the authority that signs the agent's, or the
// agent's own. While one is exchanged for another, the record has both.

const (
	// maxAuthorities is how many bytes of PEM a record takes: some thirty certificates.
	maxAuthorities = 64 << 10
	// mostAuthorities is how many certificates those may be.
	mostAuthorities = 16
)

// CheckAuthorities refuses a text that is not certificates in PEM and nothing else in PEM: at least one and at most 16, each
// another, in at most 64 KiB. What stands between them is a comment. Its errors repeat nothing of the text.
func CheckAuthorities(text string) error {
	if len(text) > maxAuthorities {
		return fmt.Errorf("more than %d bytes: give the certificates that sign the agent's, and no others", maxAuthorities)
	}
	if strings.Contains(text, "PRIVATE KEY-----") {
		return errors.New("there is a private key in it: give certificates only, and keep the key where it was made")
	}
	begun, rest := strings.Count("\n"+text, "\n-----BEGIN "), []byte(text)
	place := map[string]int{}
	for n := 1; ; n++ {
		block, after := pem.Decode(rest)
		switch {
		case block == nil && begun == 0:
			return errors.New("it holds no certificate in PEM")
		case block == nil && begun >= n:
			return errors.New("what begins as a certificate in it is none, or has no end: copy the file again")
		case block == nil:
			return nil
		case n > mostAuthorities:
			return fmt.Errorf("more than %d certificates", mostAuthorities)
		case block.Type != "CERTIFICATE" || len(block.Headers) > 0:
			return fmt.Errorf("number %d in it is no plain CERTIFICATE in PEM", n)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d in it cannot be read", n)
		}
		if first := place[string(block.Bytes)]; first > 0 {
			return fmt.Errorf("certificate %d is the same as certificate %d: during an exchange, give the former one and the new one",
				n, first)
		}
		place[string(block.Bytes)], rest = n, after
	}
}
