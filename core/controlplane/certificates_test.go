package controlplane_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func (a reader) certifies() (certificates.Issued, error) {
	return a.w.Certificates.Issue(a.w.ctx, a.r, a.name)
}

// certified is a certificate whose signature is that of a published key.
func (a reader) certified() certificate.Certificate {
	a.w.t.Helper()
	c := must(a.certifies())(a.w.t)
	c.Done()
	if !a.w.signed(c.Certificate) {
		a.w.t.Fatalf("the signature of %s is none of a published key", c.Document)
	}
	return c.Certificate
}

func (w *world) published() []certificate.Key {
	w.t.Helper()
	keys, _, err := w.Certificates.Keys(w.ctx, ports.Page{})
	ok(w.t, err)
	return keys
}

func (w *world) signed(c certificate.Certificate) bool {
	w.t.Helper()
	for _, k := range w.published() {
		if k.ID == c.KeyID {
			return ed25519.Verify(k.PublicKey, c.Document, c.Signature)
		}
	}
	return false
}

func TestACertificateOfABackup(t *testing.T) {
	w := newWorld(t)
	ada := w.reader("ada")
	_, err := ada.certifies()
	refused(t, err, fault.FeatureNotAvailable)

	key := must(w.Operator.CreateCertificateKey(w.ctx))(t)
	first := ada.certified()
	var d certificate.Document
	ok(t, json.Unmarshal(first.Document, &d))
	equal(t, "key", d.KeyID, key.ID)
	equal(t, "database", d.DatabaseID, ada.r.Record().ID)
	equal(t, "file", d.Backup.SHA256, w.backups(ada.r)[0].ChecksumSHA256)
	w.clock.Advance(time.Hour)
	must(w.Keyring.Reseal(w.ctx))(t)
	if again := ada.certified(); !bytes.Equal(again.Document, first.Document) || !bytes.Equal(again.Signature, first.Signature) {
		t.Errorf("then it was %s", again.Document)
	}

	_, fresh, err := w.Operator.RotateCertificateKey(w.ctx, "")
	ok(t, err)
	equal(t, "key of the next", ada.certified().KeyID, fresh.ID)
	if !w.signed(first) {
		t.Error("the retired key does not verify what it has signed")
	}
	for _, k := range w.published() {
		if k.SealedSeed != nil {
			t.Errorf("a private part is published: %+v", k)
		}
	}
}

func TestABackupWithoutCertificate(t *testing.T) {
	w := newWorld(t)
	must(w.Operator.CreateCertificateKey(w.ctx))(t)
	ada, bob := w.reader("ada"), w.reader("bob")
	_, err := w.Certificates.Issue(w.ctx, bob.r, "20000101_000000.sql.gz")
	refused(t, err, fault.BackupNotFound)

	w.server.SetNotVerified("a row differs")
	eve := w.reader("eve")
	_, err = eve.certifies()
	refused(t, err, fault.BackupNotVerified)

	equal(t, "manifests that the agent was asked for", w.server.Calls("OpenManifest"), 0)

	w.server.Tamper(ada.r.Record().ID, ada.name, func(text []byte) []byte { return append(text, '\n') })
	_, err = ada.certifies()
	refused(t, err, fault.AgentError)
}

// A key that is retired while the manifest is on its way signs no more.
func TestARetiredKeySignsNoMore(t *testing.T) {
	w := newWorld(t)
	first := must(w.Operator.CreateCertificateKey(w.ctx))(t)
	ada := w.reader("ada")
	var fresh certificate.Key
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "OpenManifest" {
			_, fresh, f.Before = w.Operator.RotateCertificateKey(w.ctx, first.ID)
		}
		return f
	})
	equal(t, "key", ada.certified().KeyID, fresh.ID)
}

// With one turn for the account, the next certificate shows whether the last one gave it back.
func TestEveryEndOfACertificateGivesBackItsTurn(t *testing.T) {
	w := configured(t, narrow(1, 1, 20*time.Millisecond))
	must(w.Operator.CreateCertificateKey(w.ctx))(t)
	ada := w.reader("ada")
	for name, f := range map[string]fakeagent.Fault{
		"refused":        {Before: &command.Refusal{Reason: command.ReasonNoRoute}},
		"failed":         {Before: errors.New("broken")},
		"the reply lost": {After: fakeagent.ErrReplyLost},
	} {
		w.server.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault { return f })
		if _, err := ada.certifies(); err == nil {
			t.Errorf("%s: a certificate", name)
		}
		w.server.OnCall(nil)
		ada.certified()
	}
	text := []byte(nil)
	w.server.Tamper(ada.r.Record().ID, ada.name, func(was []byte) []byte { text = was; return nil })
	_, err := ada.certifies()
	refused(t, err, fault.AgentError)
	w.server.Tamper(ada.r.Record().ID, ada.name, func([]byte) []byte { return text })
	ada.certified()
}

// meanwhile does something before the first transaction.
type meanwhile struct {
	ports.Store
	do func()
}

func (m *meanwhile) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.Store.Update(ctx, fn)
}

// Of two who rotate at once, or one just after the other, one does.
func TestOfTwoWhoRotateOneDoes(t *testing.T) {
	w := newWorld(t)
	first := must(w.Operator.CreateCertificateKey(w.ctx))(t)
	w.clock.Advance(time.Minute)
	var winner certificate.Key
	w.ports.Store = &meanwhile{Store: w.store, do: func() {
		var err error
		_, winner, err = w.Operator.RotateCertificateKey(w.ctx, "")
		ok(t, err)
	}}
	_, _, err := w.process(quick()).Operator.RotateCertificateKey(w.ctx, "")
	refused(t, err, fault.ValidationError)
	var ids []id.CertificateKeyID
	for _, k := range w.published() {
		ids = append(ids, k.ID)
	}
	if len(ids) != 2 || ids[0] != winner.ID && ids[1] != winner.ID || ids[0] != first.ID && ids[1] != first.ID {
		t.Errorf("the keys are %v; want %s and %s", ids, winner.ID, first.ID)
	}
	_, _, err = w.Operator.RotateCertificateKey(w.ctx, first.ID)
	refused(t, err, fault.ValidationError)
	w.clock.Advance(time.Minute - 1)
	_, _, err = w.Operator.RotateCertificateKey(w.ctx, "")
	refusedOn(t, "just after the other", err, "key", string(winner.ID)+" has signed only since 2026-01-05T09:31:", "--key")
	entries := must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t)
	entries = slices.DeleteFunc(entries, func(e base.By[audit.Entry]) bool {
		return e.What.Action != audit.CertificateKeyCreated && e.What.Action != audit.CertificateKeyRotated
	})
	equal(t, "entries of the log", len(entries), 2)
}

func TestCertificatesTakeTurns(t *testing.T) {
	w := configured(t, narrow(1, 1, 20*time.Millisecond))
	must(w.Operator.CreateCertificateKey(w.ctx))(t)
	var all []reader
	for _, name := range []string{"ada", "bob", "cid", "dan", "eve", "fay", "gil", "hal", "ida"} {
		all = append(all, w.reader(name))
	}
	first := must(all[0].certifies())(t)
	_, err := all[0].certifies()
	expectLater(t, err, fault.RateLimited)
	for _, other := range all[1:8] {
		must(other.certifies())(t)
	}
	_, err = all[8].certifies()
	expectLater(t, err, fault.ServerBusy)
	first.Done()
	must(all[8].certifies())(t)
}
