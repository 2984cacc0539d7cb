package spec

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"reflect"
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
)

var certifying = []Scenario{
	{Name: "a restored backup has a certificate, which whoever has no key can check, and of which no byte can be changed",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Connects(made.Login()).Write("first", "second"))
			file := ada.FinishesBackup(made.ID)
			c, d := ada.certifies(made.ID, file)

			listed := ada.ListsBackups(made.ID)[0]
			s.That(d.Format == "pgherd-restore-certificate/1" && d.KeyID == c.KeyID && d.DatabaseID == made.ID &&
				d.Database == made.Name && d.Backup.Filename == file && d.Backup.OperationID == listed.OperationID &&
				d.VerifiedAt.Equal(*listed.VerifiedAt) && d.ServerVersion != "" && d.Comparison == "contents", "it says %s", c.Document)
			sum := sha256.Sum256(ada.Downloads(made.ID, file))
			s.That(d.Backup.SHA256 == hex.EncodeToString(sum[:]), "the file's SHA-256 is %x; it says %s", sum, c.Document)
			at := slices.IndexFunc(d.Tables, func(t certificate.Table) bool { return t.Name == "public.note" })
			s.That(at >= 0 && d.Tables[at].Rows == 2 && len(d.Tables[at].Digest) == 64, "the tables are %+v", d.Tables)

			keys := s.certificateKeys()
			for i := range c.Document {
				changed := wire.Certificate{KeyID: c.KeyID, Document: bytes.Clone(c.Document), Signature: c.Signature}
				changed.Document[i] ^= 1
				s.That(!s.signed(changed, keys), "signed: %s", changed.Document)
			}
			for _, host := range s.Hosts {
				again := must(host(ada.Key.Text).Certificates.Get(ctx, made.ID, file))(s)
				s.That(bytes.Equal(again.Document, c.Document) && bytes.Equal(again.Signature, c.Signature), "then it was %s", again.Document)
			}
		}},
	{Name: "a new key signs the same facts, and the old one can be checked for ever", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		file := ada.FinishesBackup(made.ID)
		before, was := ada.certifies(made.ID, file)
		s.OK(s.Operator.RotateSecrets())
		s.OK(s.Operator.DropOldSecretKeys())
		same, _ := ada.certifies(made.ID, file)
		s.That(bytes.Equal(same.Signature, before.Signature), "the re-encryption changed the key")

		s.OK(s.Operator.RotateCertificateKey(before.KeyID))
		after, is := ada.certifies(made.ID, file)
		s.That(after.KeyID != before.KeyID, "%s signs as before", after.KeyID)
		is.KeyID = was.KeyID
		s.That(reflect.DeepEqual(is, was), "it says %s, and said %s", after.Document, before.Document)
		keys := s.certificateKeys()
		s.That(s.signed(before, keys), "the retired key is not published")
		s.That(keys[0].KeyID == after.KeyID && keys[0].RetiredAt == nil && keys[1].KeyID == before.KeyID && keys[1].RetiredAt != nil,
			"the keys are %+v", keys)
	}},
	{Name: "what was not restored and found equal has no certificate", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Spoil(made))
		ada.Follows(ada.BacksUp(made.ID))
		file := ada.ListsBackups(made.ID)[0].Filename
		s.Refused(refusal(ada.Certificates.Get(ctx, made.ID, file)), "BACKUP_NOT_VERIFIED")
		s.Refused(refusal(ada.Certificates.Get(ctx, made.ID, "20000101_000000.sql.gz")), "BACKUP_NOT_FOUND")
	}},
}

// certifies returns the certificate of a backup, whose signature is right, and what it says.
func (c *Customer) certifies(of id.DatabaseID, file backup.Filename) (made wire.Certificate, d certificate.Document) {
	s := c.stage
	s.Helper()
	made = must(c.Certificates.Get(ctx, of, file))(s)
	s.That(s.signed(made, s.certificateKeys()), "its signature is not that of the key %s: %s", made.KeyID, made.Document)
	s.OK(json.Unmarshal(made.Document, &d))
	return made, d
}

// certificateKeys are the keys that anybody can read.
func (s *Stage) certificateKeys() []wire.CertificateKey {
	s.Helper()
	var all []wire.CertificateKey
	for k, err := range s.Hosts[0]("").Certificates.ListKeys().All(ctx) {
		s.OK(err)
		all = append(all, k)
	}
	return all
}

// signed checks a certificate as an auditor does.
func (s *Stage) signed(c wire.Certificate, keys []wire.CertificateKey) bool {
	s.Helper()
	for _, k := range keys {
		if k.KeyID != c.KeyID {
			continue
		}
		block, _ := pem.Decode([]byte(k.PEM))
		s.That(block != nil, "no PEM: %q", k.PEM)
		public := must(x509.ParsePKIXPublicKey(block.Bytes))(s).(ed25519.PublicKey)
		s.That(bytes.Equal(public, k.PublicKey), "%s has two public keys", k.KeyID)
		return ed25519.Verify(public, c.Document, c.Signature)
	}
	return false
}
