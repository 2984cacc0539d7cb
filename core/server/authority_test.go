package server

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// authority is a certificate in PEM, and its key.
func authority(t testing.TB, number int64) (certificate, key string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(number)}, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: fmt.Sprint("CA ", number)}, IsCA: true,
	}
	der, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM("CERTIFICATE", der), inPEM("PRIVATE KEY", pkcs8)
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestAuthorities(t *testing.T) {
	former, key := authority(t, 1)
	fresh, _ := authority(t, 2)
	many := ""
	for n := range int64(mostAuthorities + 1) {
		one, _ := authority(t, n+1)
		many += one
	}
	sixteen := strings.Join(strings.SplitAfter(many, "-----END CERTIFICATE-----\n")[:mostAuthorities], "")
	for name, c := range map[string]struct{ text, wrong string }{
		"one":                     {former, ""},
		"the pair":                {former + fresh, ""},
		"the pair, with comments": {"former:\n" + former + "\r\n# new, from 2026\r\n" + strings.ReplaceAll(fresh, "\n", "\r\n"), ""},
		"sixteen":                 {sixteen, ""},
		"seventeen":               {many, "more than 16 certificates"},
		"nothing":                 {"", "no certificate in PEM"},
		"junk":                    {"\x00\xff junk", "no certificate in PEM"},
		"junk as long as allowed": {strings.Repeat("x", maxAuthorities), "no certificate in PEM"},
		"too long":                {former + strings.Repeat("x", maxAuthorities), "more than 65536 bytes"},
		"a private key":           {key, "private key"},
		"a pair with its key":     {former + key, "private key"},
		"a key of another kind":   {former + strings.ReplaceAll(key, "PRIVATE", "EC PRIVATE"), "private key"},
		"a key without an end":    {former + key[:len(key)/2], "private key"},
		"the same one twice":      {former + former, "certificate 2 is the same as certificate 1"},
		"the new one cut off":     {former + fresh[:len(fresh)/2], "has no end"},
		"the first one cut off":   {former[:len(former)/2] + "\n" + fresh, "has no end"},
		"no certificate inside":   {former + inPEM("CERTIFICATE", []byte("no DER")), "certificate 2 in it cannot be read"},
		"a request":               {inPEM("CERTIFICATE REQUEST", []byte("x")), "number 1 in it is no plain CERTIFICATE"},
		"a header":                {strings.Replace(former, "-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n", 1), "no plain CERTIFICATE"},
	} {
		err := CheckAuthorities(c.text)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
		if err != nil && (strings.Contains(err.Error(), "junk") || strings.ContainsAny(err.Error(), "\n+/=")) {
			t.Errorf("%s: %v", name, err)
		}
		s := Server{AgentURL: "https://agent:8090", PublicHost: "db.example.org", PublicPort: 6432, Capacity: 1, CA: c.text}
		if err := s.Validate(); c.text != "" && (err == nil) != (c.wrong == "") || err != nil && field(err) != "agentCaFile" {
			t.Errorf("%s: the record: %v", name, err)
		} else if err != nil && !fault.Has(err, fault.ValidationError) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is accepted is what a TLS client trusts, the whole of it: that passes over what it cannot read.
func FuzzCheckAuthorities(f *testing.F) {
	former, key := authority(f, 1)
	fresh, _ := authority(f, 2)
	for _, text := range []string{
		"", former, former + fresh, former + former, former + key, former + fresh[:99], "x\n" + former + "\ny",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckAuthorities(text) != nil {
			return
		}
		trusted, each := x509.NewCertPool(), x509.NewCertPool()
		if !trusted.AppendCertsFromPEM([]byte(text)) || len(text) > maxAuthorities || strings.Contains(text, "PRIVATE KEY-----") {
			t.Fatalf("%q", text)
		}
		begun := 0
		for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
			one, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			each.AddCert(one)
			begun++
		}
		if !each.Equal(trusted) || begun != strings.Count("\n"+text, "\n-----BEGIN ") {
			t.Fatalf("%d certificates of %q", begun, text)
		}
	})
}
