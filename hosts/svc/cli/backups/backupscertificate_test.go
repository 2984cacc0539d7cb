package backups

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

const signingKey = "5f0c9a6e-0d3b-4c7a-9a53-0c2f6a1d7e11"

// published answers with the keys of certificates.
func published(t *testing.T, keys ...wire.CertificateKey) *apiclient.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(wire.Page[wire.CertificateKey]{Data: keys}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return check.Must(apiclient.New(apiclient.Config{URL: server.URL, Attempts: 1}))(t)
}

func TestTheSignatureOfACertificateIsChecked(t *testing.T) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := []byte(private.Public().(ed25519.PublicKey))
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize)))
	document := []byte(`{"format":"pgherd-restore-certificate/1","database":"orders"}`)
	newer := []byte(`{"format":"pgherd-restore-certificate/2","database":"orders"}`)
	const wrong = "the signature of the certificate is not that of key"
	for name, c := range map[string]struct {
		document, signature, public []byte
		problem                     string
	}{
		"right":            {document, ed25519.Sign(private, document), public, ""},
		"another document": {newer, ed25519.Sign(private, document), public, wrong},
		"another key":      {document, ed25519.Sign(other, document), public, wrong},
		"no signature":     {document, nil, public, wrong},
		"half a key":       {document, ed25519.Sign(private, document), public[:16], wrong},
		"a newer format":   {newer, ed25519.Sign(private, newer), public, "which this version does not know"},
		"no document":      {[]byte("x"), ed25519.Sign(private, []byte("x")), public, "what was signed is no certificate"},
	} {
		keys := published(t, wire.CertificateKey{KeyID: signingKey, PublicKey: c.public})
		signed := wire.Certificate{KeyID: signingKey, Document: c.document, Signature: c.signature}
		says, err := checkCertificate(t.Context(), keys, signed)
		if c.problem == "" && (err != nil || says.Database != "orders") {
			t.Errorf("%s: %v, %v", name, says, err)
		}
		if c.problem != "" && !strings.Contains(fmt.Sprint(err), c.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := checkCertificate(t.Context(), published(t), wire.Certificate{KeyID: signingKey})
	if err == nil || !strings.Contains(err.Error(), "published key") {
		t.Errorf("a key that is not published: %v", err)
	}
}
