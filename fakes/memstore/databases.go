package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

type databases struct{ session }

func (d databases) Add(ctx context.Context, r database.Record) error {
	return d.write(ctx, func(s *state) error {
		_, accountKnown := s.accounts.get(r.AccountID)
		_, serverKnown := s.servers.get(r.ServerID)
		same := func(other database.Record) bool { return other.ServerID == r.ServerID && other.Name == r.Name }
		switch {
		case !accountKnown || !serverKnown:
			return d.refuse(ports.ErrNoRow)
		case s.databases.any(same):
			return d.refuse(database.ErrNameTaken())
		}
		s.databases.put(s.txid, r.ID, r)
		return nil
	})
}

// record adds what is known of a database by its server and its account.
func (s *state) record(r database.Record) database.Record {
	server, _ := s.servers.get(r.ServerID)
	r.Host, r.Port = server.PublicHost, server.PublicPort
	owner, _ := s.accounts.get(r.AccountID)
	r.Plan, r.DatabaseBytes, r.Suspension = owner.Plan, owner.DatabaseBytes, owner.Suspension
	of, _ := s.previews.get(r.ID)
	r.NamespaceID = of.NamespaceID
	return r
}

// ties are what is stored between a viewer and a database.
func (s *state) ties(v database.Viewer, db id.DatabaseID) database.Ties {
	key, known := s.keys.get(v.KeyID)
	ofPerson, _ := s.sessions.get(v.SessionID)
	_, bound := s.bindings.get(binding{v.KeyID, db})
	member, _ := s.memberships.get(membershipKey{db, v.UserID})
	own, _ := s.accounts.get(v.AccountID)
	return database.Ties{
		KeyValid: known && key.RevokedAt == nil, SessionOpen: ofPerson.Status == person.Open, Bound: bound, Member: member.Role,
		OwnSuspendedFor: own.SuspendedFor,
	}
}

func (d databases) Get(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return read(ctx, d.session, func(s *state) (database.Record, error) {
		r, err := found(s.databases.get(db))
		return s.record(r), err
	})
}

func (d databases) Tied(
	ctx context.Context, v database.Viewer, db id.DatabaseID,
) (database.Record, database.Ties, error) {
	s, err := d.reading(ctx)
	if err != nil {
		return database.Record{}, database.Ties{}, err
	}
	r, err := found(s.databases.get(db))
	if err != nil {
		return database.Record{}, database.Ties{}, err
	}
	return s.record(r), s.ties(v, db), nil
}

func (d databases) AllTied(ctx context.Context, v database.Viewer, list []id.DatabaseID) ([]database.Tied, error) {
	return read(ctx, d.session, func(s *state) (found []database.Tied, _ error) {
		for _, r := range s.records(func(r database.Record) bool { return slices.Contains(list, r.ID) }, nil) {
			found = append(found, database.Tied{Record: r, Ties: s.ties(v, r.ID)})
		}
		return found, nil
	})
}

func (d databases) Visible(
	ctx context.Context, v database.Viewer, of database.Listing, p ports.Page,
) ([]database.Listed, error) {
	return read(ctx, d.session, func(s *state) (list []database.Listed, _ error) {
		for _, r := range s.records(every, nil) {
			if standing, sees := v.StandingOn(r, s.ties(v, r.ID)); sees && of.Has(r, standing) {
				list = append(list, s.listed(r, standing, of))
			}
		}
		direction := 1
		if of.Descending {
			direction = -1
		}
		return pagedByKey(list, p, func(r database.Listed) ports.Position { return ports.PlaceIn(of, r.Record) }, direction, of.IsKey)
	})
}

func (s *state) listed(r database.Record, standing account.Standing, of database.Listing) database.Listed {
	shown := database.Listed{Record: r, Standing: standing}
	for _, b := range s.backups.byKey {
		counts := of.Backups && b.DatabaseID == r.ID && b.VerifiedAt != nil && b.DeletingAt == nil
		if counts && (shown.VerifiedBackupAt == nil || shown.VerifiedBackupAt.Before(b.CreatedAt)) {
			shown.VerifiedBackupAt = &b.CreatedAt
		}
	}
	return shown
}

func (s *state) records(match func(database.Record) bool, order func(a, b database.Record) int) []database.Record {
	list := s.databases.having(match, order)
	for i := range list {
		list[i] = s.record(list[i])
	}
	return list
}

func (d databases) Lock(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return write(ctx, d.session, func(s *state) (database.Record, error) {
		r, err := found(s.databases.get(db))
		return s.record(r), err
	})
}

func (d databases) Count(ctx context.Context, of id.AccountID) (int, error) {
	return read(ctx, d.session, func(s *state) (int, error) {
		return s.count(func(r database.Record) bool { return r.AccountID == of && s.inService(r) }), nil
	})
}

// inService reports whether a database is not deleted, or is being recovered.
func (s *state) inService(r database.Record) bool {
	recovering := func(o operation.Operation) bool { return isOpenOn(r.ID)(o) && o.Kind == deletion.KindRecover }
	return !r.Status.Gone() || s.operations.any(recovering)
}

func (s *state) count(match func(database.Record) bool) int {
	n := 0
	for _, r := range s.databases.byKey {
		if match(r) {
			n++
		}
	}
	return n
}

func (d databases) Save(ctx context.Context, r database.Record) error {
	return d.write(ctx, func(s *state) error {
		stored, ok := s.databases.get(r.ID)
		if !ok {
			return ports.ErrNoRow
		}
		r.AccountID, r.ServerID, r.Name = stored.AccountID, stored.ServerID, stored.Name
		r.RoleModel, r.CreatedAt = stored.RoleModel, stored.CreatedAt
		s.databases.put(s.txid, r.ID, r)
		return nil
	})
}

func (d databases) Remove(ctx context.Context, db id.DatabaseID) error {
	return d.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(db); !ok {
			return ports.ErrNoRow
		}
		if s.backups.any(func(b backup.Backup) bool { return b.DatabaseID == db }) ||
			s.uploads.any(func(u upload.Upload) bool { return u.DatabaseID == db }) {
			return d.refuse(ports.ErrReferenced)
		}
		s.databases.delete(s.txid, db)
		s.previews.delete(s.txid, db)
		s.forgetDrills(db)
		s.forwards.remove(s.txid, func(k forwardKey, _ move.Forward) bool { return k.database == db })
		s.rehearsals.remove(s.txid, func(k rehearsalKey, _ rehearsal.Rehearsal) bool { return k.database == db })
		s.forget(db)
		s.backupKeys.remove(s.txid, func(k id.DatabaseID, _ backup.Key) bool { return k == db })
		s.logins.remove(s.txid, func(k loginKey, _ ports.LoginSecret) bool { return k.database == db })
		s.roles.remove(s.txid, func(_ id.RoleID, r role.Role) bool { return r.DatabaseID == db })
		s.roleChanges.remove(s.txid, func(_ id.OperationID, c role.Change) bool { return c.DatabaseID == db })
		s.allowlist.remove(s.txid, func(_ id.AllowlistEntryID, e database.AllowlistEntry) bool { return e.DatabaseID == db })
		s.memberships.remove(s.txid, func(k membershipKey, _ member.Membership) bool { return k.database == db })
		s.invitations.remove(s.txid, func(_ id.InvitationID, i member.Invitation) bool { return i.DatabaseID == db })
		s.mails.remove(s.txid, func(_ id.MailID, m mail.Mail) bool { return m.DatabaseID == db })
		s.bindings.remove(s.txid, func(b, _ binding) bool { return b.database == db })
		s.enrolments.remove(s.txid, func(e, _ enrolment) bool { return e.database == db })
		s.requests.remove(s.txid, func(_ requestKey, r idempotency.Record) bool { return r.ResourceID == string(db) })
		return nil
	})
}

func (d databases) WaysBack(ctx context.Context, version, limit int) ([]database.Record, error) {
	return read(ctx, d.session, func(s *state) ([]database.Record, error) {
		open := func(r database.Record) bool { return r.WayBack == version && r.WayBack != 0 && !r.Status.Gone() }
		return first(s.records(open, func(a, b database.Record) int { return cmp.Compare(a.ID, b.ID) }), limit), nil
	})
}

func (d databases) Due(ctx context.Context, what ports.DueWork, now time.Time, limit int) ([]database.Record, error) {
	return read(ctx, d.session, func(s *state) ([]database.Record, error) {
		usable := []database.Status{database.Active, database.Stopped}
		switch what {
		case ports.DueBackup:
			due := func(r database.Record) bool {
				return slices.Contains(usable, r.Status) && r.NextBackupAt != nil && !r.NextBackupAt.After(now) &&
					!s.operations.any(isOpenOn(r.ID))
			}
			return first(s.records(due, func(a, b database.Record) int {
				return byTime(*a.NextBackupAt, string(a.ID), *b.NextBackupAt, string(b.ID))
			}), limit), nil
		case ports.DueReading:
			due := func(r database.Record) bool {
				return r.Status != database.Creating && r.Status != database.Purging && !r.NextReadingAt.After(now)
			}
			return first(s.records(due, func(a, b database.Record) int {
				return byTime(a.NextReadingAt, string(a.ID), b.NextReadingAt, string(b.ID))
			}), limit), nil
		case ports.DueAllowlist:
			due := func(r database.Record) bool {
				return slices.Contains(usable, r.Status) && r.AllowlistApplied < r.AllowlistGeneration
			}
			return first(s.records(due, func(a, b database.Record) int { return cmp.Compare(a.ID, b.ID) }), limit), nil
		case ports.DueSettings:
			due := func(r database.Record) bool {
				there := slices.Contains(usable, r.Status) || r.Status == database.Error && s.record(r).Suspended()
				return there && r.SettingsApplied < r.SettingsGeneration
			}
			return first(s.records(due, func(a, b database.Record) int { return cmp.Compare(a.ID, b.ID) }), limit), nil
		}
		return nil, fmt.Errorf("nothing is known to be due as %q", what)
	})
}
