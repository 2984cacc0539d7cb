package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/ports"
)

type vault struct{ session }

func (v vault) Next(ctx context.Context, after string, limit int) ([]ports.SealedValue, error) {
	s, err := v.reading(ctx)
	if err != nil {
		return nil, err
	}
	var values []ports.SealedValue
	for _, l := range s.logins.byKey {
		ref := "login/" + string(l.DatabaseID) + "/" + string(l.Login)
		values = append(values, ports.SealedValue{Ref: ref, Context: l.Context(), Sealed: bytes.Clone(l.Sealed)})
	}
	for _, r := range s.servers.byKey {
		ref := "server/" + string(r.ID)
		values = append(values, ports.SealedValue{Ref: ref, Context: r.SecretContext(), Sealed: bytes.Clone(r.SealedSecret)})
	}
	values = slices.DeleteFunc(values, func(value ports.SealedValue) bool { return value.Ref <= after })
	slices.SortFunc(values, func(a, b ports.SealedValue) int { return cmp.Compare(a.Ref, b.Ref) })
	return first(values, limit), nil
}

func (v vault) Replace(ctx context.Context, value ports.SealedValue, sealed []byte) error {
	s, err := v.writing(ctx)
	if err != nil {
		return err
	}
	sealed = bytes.Clone(sealed)
	for key, l := range s.logins.byKey {
		ref := "login/" + string(l.DatabaseID) + "/" + string(l.Login)
		if ref == value.Ref && bytes.Equal(l.Sealed, value.Sealed) {
			l.Sealed = sealed
			s.logins.put(key, l)
			return nil
		}
	}
	for key, r := range s.servers.byKey {
		if "server/"+string(r.ID) == value.Ref && bytes.Equal(r.SealedSecret, value.Sealed) {
			r.SealedSecret = sealed
			s.servers.put(key, r)
			return nil
		}
	}
	return nil
}
