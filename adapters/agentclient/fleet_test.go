package agentclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

func TestAFleetKeepsConnectionsAndFollowsTheRecord(t *testing.T) {
	var authorization string
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		answer(200, `{"bytes":1}`)(rw, r)
	})
	fleet := newFleet(t, agentclient.Options{})
	s := w.server(t)
	for range 3 {
		a := check.Must(fleet.Agent(s))(t)
		check.Must(ports.Ask(brief(t), a, command.DatabaseSize{DatabaseID: database}))(t)
	}
	if authorization != "Bearer "+secret || w.conns.Load() != 1 {
		t.Errorf("%q over %d connections", authorization, w.conns.Load())
	}

	s.SealedSecret = sealSecret(t, s, "another-secret")
	a := check.Must(fleet.Agent(s))(t)
	if err := calls["DatabaseSize"](brief(t), a); err != nil || authorization != "Bearer another-secret" {
		t.Errorf("after a change of the secret the agent heard %q (%v)", authorization, err)
	}
}

func TestAFleetFollowsURLAndCA(t *testing.T) {
	before, after := newWire(t, answer(200, `{"bytes":1}`)), newWire(t, answer(200, `{"bytes":2}`))
	fleet := newFleet(t, agentclient.Options{})
	s := before.server(t)
	if a, err := fleet.Agent(s); err != nil {
		t.Fatal(err)
	} else if n, err := ports.Ask(brief(t), a, command.DatabaseSize{DatabaseID: database}); err != nil || n.Bytes != 1 {
		t.Fatalf("got %d (%v)", n.Bytes, err)
	}
	s.AgentURL = after.URL
	if a, err := fleet.Agent(s); err != nil {
		t.Fatal(err)
	} else if n, err := ports.Ask(brief(t), a, command.DatabaseSize{DatabaseID: database}); err != nil || n.Bytes != 2 {
		t.Errorf("after a change of the URL: got %d (%v)", n.Bytes, err)
	}
	s.CA = foreignCA(t)
	if a, err := fleet.Agent(s); err != nil {
		t.Fatal(err)
	} else {
		_, err := ports.Ask(brief(t), a, command.DatabaseSize{DatabaseID: database})
		wantUnreachable(t, err)
	}
}

// foreignCA is a certificate that has signed nothing.
func foreignCA(t *testing.T) string {
	t.Helper()
	key := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := check.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
