package memstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/role"
)

func (d databases) Pulses(ctx context.Context, list []id.DatabaseID) (map[id.DatabaseID]string, error) {
	return read(ctx, d.session, func(s *state) (map[id.DatabaseID]string, error) {
		found := map[id.DatabaseID]string{}
		for _, r := range s.records(func(r database.Record) bool { return slices.Contains(list, r.ID) }, nil) {
			found[r.ID] = s.pulse(r)
		}
		return found, nil
	})
}

// newestEntries is of how many activity entries a pulse is.
const newestEntries = 5

// pulse is what pages show of a database, as one text.
func (s *state) pulse(r database.Record) string {
	db := r.ID
	r.SizedAt, r.NextReadingAt = nil, time.Time{}
	entries := s.audit.having(func(e audit.Entry) bool { return e.DatabaseID == db }, func(a, b audit.Entry) int {
		return byTime(b.At, string(b.ID), a.At, string(a.ID))
	})
	work := s.operations.having(func(o operation.Operation) bool { return o.DatabaseID == db }, func(a, b operation.Operation) int {
		return byTime(b.CreatedAt, string(b.ID), a.CreatedAt, string(a.ID))
	})
	files := s.backups.having(func(b backup.Backup) bool { return b.DatabaseID == db }, func(a, b backup.Backup) int {
		return byTime(b.CreatedAt, string(b.Filename), a.CreatedAt, string(a.Filename))
	})
	tombstone, _ := s.tombstones.get(db)
	lease, _ := s.previews.get(db)
	return text(r,
		shown(first(entries, newestEntries), func(e audit.Entry) []any { return []any{e.ID} }),
		shown(first(work, 1), func(o operation.Operation) []any { return []any{o.ID} }),
		shown(first(files, 1), func(b backup.Backup) []any { return []any{b.Filename, b.VerifiedAt, b.DamagedAt} }),
		shown(work, func(o operation.Operation) []any {
			return only(!o.Status.Final(), o.ID, o.Status, o.Stage, o.Progress, o.BytesDone, o.BytesTotal, o.CancelRequested, o.ErrorCode)
		}),
		shown(s.roles.having(every, nil), func(r role.Role) []any {
			return only(r.DatabaseID == db && r.Status != role.Removed,
				r.ID, r.DisplayName, r.Status, r.CredentialGeneration, r.CredentialExpiresAt)
		}),
		shown(s.roleChanges.having(every, nil), func(c role.Change) []any {
			return only(c.DatabaseID == db && c.Open(), c.ID, c.Refusal, c.Revealed)
		}),
		shown(s.memberships.having(every, nil), func(m member.Membership) []any { return only(m.DatabaseID == db, m.ID, m.Role) }),
		shown(s.invitations.having(every, nil), func(i member.Invitation) []any {
			return only(i.DatabaseID == db && (i.Status == member.Open || i.Status == member.Expired), i.ID, i.Role, i.Status, i.ExpiresAt)
		}),
		shown([]preview.Preview{lease}, func(p preview.Preview) []any { return []any{p.Lease, p.ExpiresAt} }),
		shown([]deletion.Tombstone{tombstone}, func(t deletion.Tombstone) []any {
			return []any{t.OperationID, t.RecoveryID, t.PurgeAfter}
		}),
	)
}

// only is what a page shows of a row where it shows that.
func only(where bool, fields ...any) []any {
	if !where {
		return nil
	}
	return fields
}

// shown is what pages show of rows, as texts in an order of their own.
func shown[V any](list []V, of func(V) []any) (texts []string) {
	for _, v := range list {
		if fields := of(v); fields != nil {
			texts = append(texts, text(fields...))
		}
	}
	slices.Sort(texts)
	return texts
}

func text(of ...any) string {
	written, _ := json.Marshal(of) // it has no fields that JSON cannot write
	return string(written)
}
