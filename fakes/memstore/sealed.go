package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

type sealedValues struct{ session }

// sealed is an encrypted value with what stores another one in its place.
type sealed struct {
	ports.SealedValue
	put func(*state, []byte)
}

// sealedIn lists the encrypted values of a table: of says what one is called, what it is bound to, and where it is in its row.
func sealedIn[K comparable, V any](
	table func(*state) *rows[K, V], of func(*V) (ref, boundTo string, value *[]byte),
) func(*state) []sealed {
	return func(s *state) (list []sealed) {
		for key, row := range table(s).byKey {
			ref, boundTo, value := of(&row)
			if *value == nil {
				continue
			}
			list = append(list, sealed{
				ports.SealedValue{Ref: ref, Context: boundTo, Sealed: bytes.Clone(*value)},
				func(s *state, with []byte) {
					*value = with
					table(s).put(s.txid, key, row)
				},
			})
		}
		return list
	}
}

var sealedTables = []func(*state) []sealed{
	sealedIn(func(s *state) *rows[id.DatabaseID, backup.Key] { return &s.backupKeys },
		func(k *backup.Key) (string, string, *[]byte) {
			return "backup-key/" + string(k.DatabaseID), k.SecretContext(), &k.Sealed
		}),
	sealedIn(func(s *state) *rows[loginKey, ports.LoginSecret] { return &s.logins },
		func(l *ports.LoginSecret) (string, string, *[]byte) {
			return "login/" + string(l.DatabaseID) + "/" + string(l.Login), l.Context(), &l.Sealed
		}),
	sealedIn(func(s *state) *rows[id.UserID, person.Factor] { return &s.factors },
		func(f *person.Factor) (string, string, *[]byte) {
			return "factor/" + string(f.UserID), f.SecretContext(), &f.SealedSecret
		}),
	sealedIn(func(s *state) *rows[id.RoleID, role.Role] { return &s.roles },
		func(r *role.Role) (string, string, *[]byte) {
			return "role/" + string(r.ID), r.SecretContext(), &r.Sealed
		}),
	sealedIn(func(s *state) *rows[id.OperationID, role.Change] { return &s.roleChanges },
		func(c *role.Change) (string, string, *[]byte) {
			return "change/" + string(c.ID), c.SecretContext(), &c.Sealed
		}),
	sealedIn(func(s *state) *rows[id.ServerID, server.Server] { return &s.servers },
		func(r *server.Server) (string, string, *[]byte) {
			return "server/" + string(r.ID), r.SecretContext(), &r.SealedSecret
		}),
	sealedIn(func(s *state) *rows[id.ServerID, server.Server] { return &s.servers },
		func(r *server.Server) (string, string, *[]byte) {
			return "archive-key/" + string(r.ID), r.ArchiveContext(), &r.SealedArchiveKey
		}),
	sealedIn(func(s *state) *rows[id.WebhookID, webhook.Endpoint] { return &s.webhooks },
		func(w *webhook.Endpoint) (string, string, *[]byte) {
			return "webhook/" + string(w.ID), webhook.SecretContext(w.ID), &w.SealedSecret
		}),
	sealedIn(func(s *state) *rows[id.CertificateKeyID, certificate.Key] { return &s.signingKeys },
		func(k *certificate.Key) (string, string, *[]byte) {
			return "certificate-key/" + string(k.ID), k.SecretContext(), &k.SealedSeed
		}),
	sealedIn(func(s *state) *rows[id.OperationID, operation.Operation] { return &s.operations },
		func(o *operation.Operation) (string, string, *[]byte) {
			return "operation-input/" + string(o.ID), o.InputContext(), &o.SealedInput
		}),
	sealedIn(func(s *state) *rows[id.OperationID, operation.Operation] { return &s.operations },
		func(o *operation.Operation) (string, string, *[]byte) {
			return "operation-result/" + string(o.ID), o.ResultContext(), &o.SealedResult
		}),
	sealedIn(func(s *state) *rows[id.MailID, mail.Mail] { return &s.mails },
		func(m *mail.Mail) (string, string, *[]byte) {
			return "mail/" + string(m.ID), mail.SecretContext(m.ID), &m.SealedToken
		}),
}

// sealed are the encrypted values in no order.
func (s *state) sealed() (list []sealed) {
	for _, in := range sealedTables {
		list = append(list, in(s)...)
	}
	return list
}

func (v sealedValues) Next(ctx context.Context, after string, limit int) ([]ports.SealedValue, error) {
	return read(ctx, v.session, func(s *state) ([]ports.SealedValue, error) {
		var values []ports.SealedValue
		for _, row := range s.sealed() {
			if row.Ref > after {
				values = append(values, row.SealedValue)
			}
		}
		slices.SortFunc(values, func(a, b ports.SealedValue) int { return cmp.Compare(a.Ref, b.Ref) })
		return first(values, limit), nil
	})
}

func (v sealedValues) Replace(ctx context.Context, value ports.SealedValue, with []byte) error {
	return v.write(ctx, func(s *state) error {
		for _, row := range s.sealed() {
			if row.Ref == value.Ref && bytes.Equal(row.Sealed, value.Sealed) {
				row.put(s, bytes.Clone(with))
			}
		}
		return nil
	})
}
