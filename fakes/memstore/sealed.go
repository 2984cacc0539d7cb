package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

type sealedValues struct{ session }

// sealed is an encrypted value with what stores another one in its place.
type sealed struct {
	ports.SealedValue
	put func(*state, []byte)
}

// sealed are the encrypted values in no order.
func (s *state) sealed() (list []sealed) {
	add := func(ref, boundTo string, value []byte, put func(*state, []byte)) {
		list = append(list, sealed{ports.SealedValue{Ref: ref, Context: boundTo, Sealed: bytes.Clone(value)}, put})
	}
	for key, l := range s.logins.byKey {
		add("login/"+string(l.DatabaseID)+"/"+string(l.Login), l.Context(), l.Sealed, func(s *state, value []byte) {
			l.Sealed = value
			s.logins.put(s.txid, key, l)
		})
	}
	for key, r := range s.roles.byKey {
		if r.Sealed != nil {
			add("role/"+string(r.ID), r.SecretContext(), r.Sealed, func(s *state, value []byte) {
				r.Sealed = value
				s.roles.put(s.txid, key, r)
			})
		}
	}
	for key, c := range s.roleChanges.byKey {
		if c.Sealed != nil {
			add("change/"+string(c.ID), c.SecretContext(), c.Sealed, func(s *state, value []byte) {
				c.Sealed = value
				s.roleChanges.put(s.txid, key, c)
			})
		}
	}
	for key, r := range s.servers.byKey {
		add("server/"+string(r.ID), r.SecretContext(), r.SealedSecret, func(s *state, value []byte) {
			r.SealedSecret = value
			s.servers.put(s.txid, key, r)
		})
	}
	for key, w := range s.webhooks.byKey {
		add("webhook/"+string(w.ID), webhook.SecretContext(w.ID), w.SealedSecret, func(s *state, value []byte) {
			w.SealedSecret = value
			s.webhooks.put(s.txid, key, w)
		})
	}
	for key, k := range s.signingKeys.byKey {
		if k.SealedSeed != nil {
			add("certificate-key/"+string(k.ID), k.SecretContext(), k.SealedSeed, func(s *state, value []byte) {
				k.SealedSeed = value
				s.signingKeys.put(s.txid, key, k)
			})
		}
	}
	for key, m := range s.mails.byKey {
		if m.SealedToken != nil {
			add("mail/"+string(m.ID), mail.SecretContext(m.ID), m.SealedToken, func(s *state, value []byte) {
				m.SealedToken = value
				s.mails.put(s.txid, key, m)
			})
		}
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
