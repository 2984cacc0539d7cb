package store

import (
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func rolesExpire(w *world) {
	db, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	until := func(db id.DatabaseID, ordinal int, status role.Status, end *time.Time) role.Role {
		return w.addRole(db, ordinal, func(r *role.Role) {
			*r = in(status, *r)
			r.CredentialExpiresAt = end
		})
	}
	first, second, third, later := minutes(1), minutes(2), minutes(3), minutes(30)
	b, a := until(db, 1, role.Ready, &second), until(other, 1, role.Ready, &first)
	c, d := until(db, 2, role.Ready, &third), until(db, 3, role.Ready, &later)
	until(db, 4, role.Ready, nil)
	for i, status := range role.Statuses {
		if status != role.Ready {
			until(db, 10+i, status, &first)
		}
	}
	w.equal("before the first", w.expiring(epoch, 10), []id.RoleID(nil))
	w.equal("a moment too early", w.expiring(first.Add(-time.Microsecond), 10), []id.RoleID(nil))
	w.equal("at the instant", w.expiring(first, 10), []id.RoleID{a.ID})
	w.equal("in order", w.expiring(minutes(5), 10), []id.RoleID{a.ID, b.ID, c.ID})
	w.equal("at most two", w.expiring(minutes(5), 2), []id.RoleID{a.ID, b.ID})
	w.equal("all", w.expiring(later, 10), []id.RoleID{a.ID, b.ID, c.ID, d.ID})
	w.update(savingRole(in(role.Expired, a)))
	w.equal("without the one that is marked", w.expiring(minutes(5), 10), []id.RoleID{b.ID, c.ID})
}

func (w *world) expiring(now time.Time, limit int) (ids []id.RoleID) {
	w.Helper()
	beside := operation.Beside{Always: []operation.Kind{"backup"}, UntilBegun: []operation.Kind{"restore"}}
	for _, r := range found(w.view, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().Expiring(ctx, now, beside, limit)
	}) {
		w.equal("an expiring role", r, w.storedRole(r.DatabaseID, r.ID))
		ids = append(ids, r.ID)
	}
	return ids
}

func rolesOfInactiveWait(w *world) {
	for i, status := range database.Statuses {
		record := w.addDatabase(numbered(i), func(r *database.Record) { r.Status = status })
		r := w.addRole(record.ID, 1)
		var want []id.RoleID
		if status == database.Active {
			want = []id.RoleID{r.ID}
		}
		w.equal("of a database that is "+string(status), w.expiring(minutes(100), 10), want)
		w.update(savingRole(in(role.Expired, r)))
	}
}

func rolesWaitForAChange(w *world) {
	db, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	first, second, elsewhere := w.addRole(db, 1), w.addRole(db, 2), w.addRole(other, 1)
	w.update(addingChange(changeOf(db).Ended(role.Completed, epoch))) // which is not pending
	ends := func(r role.Role) {
		r.CredentialExpiresAt = &epoch
		w.update(savingRole(r))
	}
	ends(first)
	for _, c := range []role.Change{changeOf(db), changeOfRole(second, role.Removal)} {
		w.update(addingChange(c))
		w.equal("while one is pending", w.expiring(minutes(100), 10), []id.RoleID{elsewhere.ID})
		w.update(savingChange(c.Ended(role.Refused, minutes(2))))
	}
	w.equal("when it has ended", w.expiring(minutes(80), 10), []id.RoleID{first.ID})
}

func rolesWaitForAnOperation(w *world) {
	db, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	late, busy := w.addRole(db, 1), w.addRole(other, 1)
	w.addWork(db) // a backup
	w.addWork(other, func(o *operation.Operation) {
		end := minutes(1)
		o.Kind, o.Status, o.FinishedAt = "restore", operation.Succeeded, &end
	})
	w.equal("beside a backup", len(w.expiring(minutes(100), 10)), 2)
	w.update(savingRole(in(role.Expired, late)))
	for kind, status := range map[operation.Kind]operation.Status{"lifecycle": operation.Queued, "restore": operation.Running} {
		third := w.addDatabase(string(kind)).ID
		w.addRole(third, 1)
		w.addWork(third, func(o *operation.Operation) { o.Kind, o.Status = kind, status })
		w.equal("beside a "+string(kind), w.expiring(minutes(100), 10), []id.RoleID{busy.ID})
	}
	fourth := w.addDatabase("fourth").ID
	waiting := w.addRole(fourth, 1)
	w.addWork(fourth, func(o *operation.Operation) { o.Kind = "restore" })
	w.equal("beside a restore that has not begun", slices.Sorted(slices.Values(w.expiring(minutes(100), 10))),
		slices.Sorted(slices.Values([]id.RoleID{busy.ID, waiting.ID})))
}
