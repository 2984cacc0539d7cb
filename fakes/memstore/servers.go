package memstore

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

type servers struct{ session }

func (v servers) Add(ctx context.Context, row server.Server) error {
	return v.write(ctx, func(s *state) error { return v.put(s, row) })
}

// put keeps names apart.
func (v servers) put(s *state, row server.Server) error {
	if s.servers.any(func(other server.Server) bool { return other.Name == row.Name && other.ID != row.ID }) {
		return v.refuse(fault.Invalid("name", "is in use"))
	}
	if s.servers.any(func(other server.Server) bool {
		return row.Installation != "" && other.Installation == row.Installation && other.ID != row.ID
	}) {
		return v.refuse(server.ErrRegistered())
	}
	row.SealedSecret, row.SealedArchiveKey = bytes.Clone(row.SealedSecret), bytes.Clone(row.SealedArchiveKey)
	s.servers.put(s.txid, row.ID, row)
	return nil
}

func (v servers) Get(ctx context.Context, of id.ServerID) (server.Server, error) {
	return read(ctx, v.session, func(s *state) (server.Server, error) { return found(s.servers.get(of)) })
}

func byName(a, b server.Server) int { return cmp.Compare(a.Name, b.Name) }

func (v servers) List(ctx context.Context) ([]server.Server, error) {
	return read(ctx, v.session, func(s *state) ([]server.Server, error) {
		return s.servers.having(func(server.Server) bool { return true }, byName), nil
	})
}

func (v servers) IDs(ctx context.Context) (list []id.ServerID, err error) {
	all, err := v.List(ctx)
	for _, s := range all {
		list = append(list, s.ID)
	}
	return list, err
}

func (v servers) Lock(ctx context.Context, of id.ServerID) error {
	return v.write(ctx, func(s *state) error {
		_, err := found(s.servers.get(of))
		return err
	})
}

func (v servers) Rooms(ctx context.Context, named string) ([]server.Room, error) {
	return write(ctx, v.session, func(s *state) (list []server.Room, _ error) {
		for _, row := range s.servers.having(func(row server.Server) bool { return row.Enabled }, byName) {
			list = append(list, s.room(row, named))
		}
		return list, nil
	})
}

func (v servers) Room(ctx context.Context, of id.ServerID, named string) (server.Room, error) {
	return write(ctx, v.session, func(s *state) (server.Room, error) {
		row, err := found(s.servers.get(of))
		if err != nil {
			return server.Room{}, err
		}
		return s.room(row, named), nil
	})
}

// standingOn are the databases that take room on a server: its own, and those that move to it or from it.
func (s *state) standingOn(of id.ServerID) []database.Record {
	return s.databases.having(func(r database.Record) bool {
		return r.ServerID == of || s.operations.any(func(o operation.Operation) bool { return isOpenOn(r.ID)(o) && o.OtherID == of })
	}, nil)
}

func (s *state) room(row server.Server, named string) server.Room {
	in := server.Room{Server: row}
	for _, r := range s.standingOn(row.ID) {
		in.Held++
		in.Named = in.Named || r.Name == named
		if s.inService(r) {
			in.Sold += r.ReservedConnections()
		}
	}
	return in
}

func (v servers) Move(ctx context.Context, db id.DatabaseID, to id.ServerID) error {
	return v.write(ctx, func(s *state) error {
		r, ok := s.databases.get(db)
		_, known := s.servers.get(to)
		switch {
		case !ok || !known:
			return v.refuse(ports.ErrNoRow)
		case s.databases.any(func(other database.Record) bool {
			return other.ServerID == to && other.Name == r.Name && other.ID != db
		}):
			return v.refuse(database.ErrNameTaken())
		}
		from := r.ServerID
		r.ServerID = to
		s.databases.put(s.txid, db, r)
		for _, op := range s.operations.byKey {
			if isOpenOn(db)(op) {
				if op.ServerID = to; op.OtherID != "" {
					op.OtherID = from
				}
				s.operations.put(s.txid, op.ID, op)
			}
		}
		return nil
	})
}

// change changes the row of a server.
func (v servers) change(ctx context.Context, of id.ServerID, change func(*server.Server)) error {
	return v.write(ctx, func(s *state) error {
		row, ok := s.servers.get(of)
		if !ok {
			return ports.ErrNoRow
		}
		change(&row)
		s.servers.put(s.txid, of, row)
		return nil
	})
}

func (v servers) Avoid(ctx context.Context, of id.ServerID, until *time.Time) error {
	return v.change(ctx, of, func(row *server.Server) { row.AvoidedUntil = until })
}

func (v servers) Answered(ctx context.Context, of id.ServerID, at time.Time, said server.Answer) error {
	return v.change(ctx, of, func(row *server.Server) {
		row.AnsweredAt, row.AwaySince, row.Storage = &at, nil, cmp.Or(said.Storage, row.Storage)
		row.PostgresVersion = cmp.Or(row.PostgresVersion, said.PostgresVersion)
		row.PublicCA = cmp.Or(said.PublicCA, row.PublicCA)
	})
}

func (v servers) Away(ctx context.Context, of id.ServerID, since time.Time) error {
	return v.change(ctx, of, func(row *server.Server) {
		if row.AwaySince == nil || since.Before(*row.AwaySince) {
			row.AwaySince = &since
		}
	})
}

func (v servers) Save(ctx context.Context, row server.Server) error {
	return v.write(ctx, func(s *state) error {
		stored, ok := s.servers.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		row.CreatedAt, row.AvoidedUntil, row.Storage = stored.CreatedAt, stored.AvoidedUntil, stored.Storage
		row.PublicCA = stored.PublicCA
		row.AnsweredAt, row.AwaySince, row.SealedArchiveKey = stored.AnsweredAt, stored.AwaySince, stored.SealedArchiveKey
		return v.put(s, row)
	})
}

func (v servers) Contents(ctx context.Context, of id.ServerID) (server.Contents, error) {
	return read(ctx, v.session, func(s *state) (n server.Contents, err error) {
		for _, r := range s.standingOn(of) {
			if s.inService(r) {
				n.Sold += r.ReservedConnections()
			}
			switch {
			case r.ServerID != of:
				n.Moving++
				continue
			case r.Status.Gone():
				n.Deleted++
			default:
				n.Databases++
			}
			n.Backups += len(s.backups.having(func(b backup.Backup) bool { return b.DatabaseID == r.ID }, nil))
			n.Changes += len(s.roleChanges.having(func(c role.Change) bool { return c.DatabaseID == r.ID && c.Open() }, nil))
		}
		n.Kept = len(s.backups.having(func(b backup.Backup) bool { return b.KeptBy == of }, nil))
		n.Forwards = len(s.forwards.having(func(f move.Forward) bool { return f.ServerID == of }, nil))
		n.Operations = len(s.operations.having(func(o operation.Operation) bool {
			return o.ServerID == of && !o.Logins && !o.Status.Final()
		}, nil))
		return n, nil
	})
}

func (v servers) Remove(ctx context.Context, of id.ServerID) error {
	return v.write(ctx, func(s *state) error {
		if _, ok := s.servers.get(of); !ok {
			return v.refuse(ports.ErrNoRow)
		}
		if s.databases.any(func(r database.Record) bool { return r.ServerID == of }) ||
			s.forwards.any(func(f move.Forward) bool { return f.ServerID == of }) {
			return v.refuse(ports.ErrReferenced)
		}
		for _, b := range s.backups.having(func(b backup.Backup) bool { return b.KeptBy == of }, nil) {
			b.KeptBy = ""
			s.backups.put(s.txid, backupKey{b.DatabaseID, b.Filename}, b)
		}
		s.qualifications.remove(s.txid, func(k qualificationKey, _ extension.Qualification) bool { return k.server == of })
		s.servers.delete(s.txid, of)
		s.drillPlans.delete(s.txid, of)
		s.drains.delete(s.txid, of)
		s.drainItems.remove(s.txid, func(k drainItemKey, _ move.DrainItem) bool { return k.server == of })
		s.rehearsals.remove(s.txid, func(_ rehearsalKey, r rehearsal.Rehearsal) bool { return r.ServerID == of })
		return nil
	})
}
