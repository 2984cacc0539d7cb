package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

type uploads struct{ session }

func byAnnouncement(a, b upload.Upload) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func (u uploads) Add(ctx context.Context, row upload.Upload) error {
	return u.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(row.DatabaseID); !ok {
			return u.refuse(ports.ErrNoRow)
		}
		s.uploads.put(s.txid, row.ID, row)
		return nil
	})
}

func (u uploads) Get(ctx context.Context, db id.DatabaseID, of id.UploadID) (upload.Upload, error) {
	return read(ctx, u.session, func(s *state) (upload.Upload, error) {
		row, ok := s.uploads.get(of)
		return found(row, ok && row.DatabaseID == db)
	})
}

func (u uploads) OfAccount(ctx context.Context, account id.AccountID) ([]upload.Upload, error) {
	return read(ctx, u.session, func(s *state) ([]upload.Upload, error) {
		return s.uploads.having(func(row upload.Upload) bool {
			of, _ := s.databases.get(row.DatabaseID)
			return of.AccountID == account
		}, byAnnouncement), nil
	})
}

func (u uploads) Save(ctx context.Context, row upload.Upload) error {
	return u.write(ctx, func(s *state) error {
		stored, ok := s.uploads.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.ExpiresAt, stored.OperationID = row.ExpiresAt, row.OperationID
		s.uploads.put(s.txid, row.ID, stored)
		return nil
	})
}

func (u uploads) Remove(ctx context.Context, of id.UploadID) error {
	return u.write(ctx, func(s *state) error {
		s.uploads.delete(s.txid, of)
		return nil
	})
}

func (u uploads) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedUpload, error) {
	return read(ctx, u.session, func(s *state) (list []ports.DoomedUpload, err error) {
		doomed := func(row upload.Upload) bool {
			if row.OperationID == "" {
				return !now.Before(row.ExpiresAt)
			}
			of, ok := s.operations.get(row.OperationID)
			return !ok || of.Status.Final()
		}
		for _, row := range first(s.uploads.having(doomed, byAnnouncement), limit) {
			of, _ := s.databases.get(row.DatabaseID)
			list = append(list, ports.DoomedUpload{Upload: row, ServerID: of.ServerID, AccountID: of.AccountID})
		}
		return list, nil
	})
}
