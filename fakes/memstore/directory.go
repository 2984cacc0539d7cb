package memstore

import (
	"context"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

type directory struct{ session }

// wanted reports whether a filter's field matches.
func wanted[T comparable](field, value T) bool {
	var none T
	return field == none || field == value
}

func (d directory) Accounts(ctx context.Context, of ports.AccountFilter, p ports.Page) ([]ports.AccountEntry, error) {
	return read(ctx, d.session, func(s *state) (list []ports.AccountEntry, _ error) {
		for _, a := range s.accounts.byKey {
			owner, _ := s.users.get(a.OwnerID)
			named := of.Owner == owner.Name && !strings.Contains(of.Owner, "@")
			owned := of.Owner == "" || named || of.Owner == owner.Email
			part := strings.Contains(owner.Email, of.Email)
			if wanted(of.ID, a.ID) && wanted(of.Plan, a.Plan) && owned && part {
				list = append(list, ports.AccountEntry{Account: a, Email: owner.Email, Name: owner.Name})
			}
		}
		list, err := pagedByID(list, p, func(e ports.AccountEntry) ports.Position {
			return ports.Position{At: e.CreatedAt, ID: string(e.ID)}
		}, 1)
		return each(list, s.used), err
	})
}

// used adds up what an account uses.
func (s *state) used(e ports.AccountEntry) ports.AccountEntry {
	for _, r := range s.databases.byKey {
		switch {
		case r.AccountID != e.ID:
			continue
		case r.Status.Gone():
			e.Deleted++
		default:
			e.Bytes += r.SizeBytes
		}
		if s.inService(r) {
			e.Databases++
		}
		e.InBackups += s.backupBytes(r.ID)
	}
	for _, k := range s.keys.byKey {
		if k.AccountID == e.ID && k.Kind == account.AccountKey && k.RevokedAt == nil {
			e.Keys++
		}
	}
	return e
}

func (d directory) Databases(ctx context.Context, of ports.DatabaseFilter, p ports.Page) ([]ports.DatabaseEntry, error) {
	return read(ctx, d.session, func(s *state) ([]ports.DatabaseEntry, error) {
		matches := func(r database.Record) bool {
			enrolled := func(e enrolment) bool { return e.database == r.ID && (of.Route == rollout.All || of.Route == e.route) }
			return wanted(of.ID, r.ID) && wanted(of.AccountID, r.AccountID) && wanted(of.ServerID, r.ServerID) &&
				wanted(of.Name, r.Name) && (len(of.Statuses) == 0 || slices.Contains(of.Statuses, r.Status)) &&
				(of.Route == "" || s.enrolments.any(enrolled))
		}
		page, err := pagedByID(s.records(matches, nil), p, func(r database.Record) ports.Position {
			return ports.Position{At: r.CreatedAt, ID: string(r.ID)}
		}, 1)
		list := make([]ports.DatabaseEntry, len(page))
		for i, r := range page {
			list[i] = ports.DatabaseEntry{
				Record: r, Email: s.ownerOf(r.AccountID).Email, InBackups: s.backupBytes(r.ID), Enrolments: []string{},
			}
			on, _ := s.servers.get(r.ServerID)
			list[i].Server = on.Name
			for e := range s.enrolments.byKey {
				if e.database == r.ID {
					list[i].Enrolments = append(list[i].Enrolments, e.route)
				}
			}
			slices.Sort(list[i].Enrolments)
		}
		return list, err
	})
}

func (s *state) ownerOf(of id.AccountID) account.User {
	a, _ := s.accounts.get(of)
	owner, _ := s.users.get(a.OwnerID)
	return owner
}

func (d directory) Backups(ctx context.Context, of ports.BackupFilter, p ports.Page) ([]ports.BackupEntry, error) {
	return read(ctx, d.session, func(s *state) ([]ports.BackupEntry, error) {
		page, err := pagedByID(s.backups.having(func(b backup.Backup) bool {
			r, _ := s.databases.get(b.DatabaseID)
			return wanted(of.DatabaseID, b.DatabaseID) && wanted(of.AccountID, r.AccountID) &&
				(!of.Unverified || b.VerifiedAt == nil) && b.DeletingAt == nil
		}, nil), p, func(b backup.Backup) ports.Position {
			return ports.Position{At: b.CreatedAt, ID: string(b.OperationID)}
		}, -1)
		list := make([]ports.BackupEntry, len(page))
		for i, b := range page {
			r, _ := s.databases.get(b.DatabaseID)
			on, _ := s.servers.get(r.ServerID)
			list[i] = ports.BackupEntry{
				Backup: s.ranked(b), Database: r.Name, Status: r.Status, AccountID: r.AccountID, Email: s.ownerOf(r.AccountID).Email,
				ServerID: r.ServerID, Server: on.Name,
			}
		}
		return list, err
	})
}

func (d directory) Namespaces(ctx context.Context, of ports.NamespaceFilter, p ports.Page) ([]ports.NamespaceEntry, error) {
	return read(ctx, d.session, func(s *state) ([]ports.NamespaceEntry, error) {
		page, err := pagedByID(s.namespaces.having(func(n account.Namespace) bool {
			return wanted(of.AccountID, n.AccountID) && wanted(of.Name, n.Name)
		}, nil), p, func(n account.Namespace) ports.Position {
			return ports.Position{At: n.CreatedAt, ID: string(n.ID)}
		}, 1)
		list := make([]ports.NamespaceEntry, len(page))
		for i, n := range page {
			list[i] = ports.NamespaceEntry{Namespace: n, Email: s.ownerOf(n.AccountID).Email}
		}
		return list, err
	})
}

func (d directory) Enrolled(ctx context.Context) (map[string]int, error) {
	return read(ctx, d.session, func(s *state) (map[string]int, error) {
		of := map[string]int{}
		for e := range s.enrolments.byKey {
			of[e.route]++
		}
		return of, nil
	})
}
