package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

var seed = [SeedBytes]byte{1, 2, 3}

func TestAKeySignsWhatItsPublicPartVerifies(t *testing.T) {
	k := NewKey("10000000-0000-4000-8000-000000000001", seed, time.Unix(0, 0))
	document := []byte("whatever it says")
	c, err := k.Sign(seed[:], document)
	if err != nil || c.KeyID != k.ID || !bytes.Equal(c.Document, document) {
		t.Fatalf("%+v, %v", c, err)
	}
	block, rest := pem.Decode([]byte(k.PEM()))
	if block == nil || len(rest) > 0 {
		t.Fatalf("no PEM: %q", k.PEM())
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(public.(ed25519.PublicKey), document, c.Signature) {
		t.Error("the signature is not the key's")
	}
	again, err := k.Sign(seed[:], document)
	if err != nil || !bytes.Equal(again.Signature, c.Signature) {
		t.Errorf("another signature of the same document: %v", err)
	}
}

func TestAKeyDoesNotSignWithAnothersSeed(t *testing.T) {
	k := NewKey("10000000-0000-4000-8000-000000000001", seed, time.Unix(0, 0))
	other := [SeedBytes]byte{1, 2, 4}
	for _, wrong := range [][]byte{other[:], seed[1:], nil} {
		if _, err := k.Sign(wrong, []byte("x")); err == nil || strings.ContainsAny(err.Error(), "\x01\x02") {
			t.Errorf("with %v: %v", wrong, err)
		}
	}
}
