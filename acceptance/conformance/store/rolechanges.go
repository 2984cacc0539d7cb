package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// RoleChanges is the suite of ports.RoleChanges.
func RoleChanges(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a change comes back as it was stored", changeComesBack},
		{"only what can change of a change is saved", changeIdentityStays},
		{"a change belongs to its database", changeBelongs},
		{"one change of a database is pending", onePending},
		{"one of many begins its change", onePendingOfMany},
		{"a key is used once, for ever", changeKeyUsedOnce},
		{"a change is whole", changeIsWhole},
		{"every change of a database is listed, the latest first", changesAreListed},
		{"a pending change with a refusal is stuck", changesAreStuck},
	})
}

// changeOf is a pending rotation of the runtime login that is not stored yet.
func changeOf(db id.DatabaseID) role.Change {
	end := minutes(90)
	return role.Change{
		ID: newID[id.OperationID](), DatabaseID: db, Login: database.RuntimeLogin, Username: "pgh_rt", Kind: role.Rotation,
		Status: role.Pending, Key: idempotency.Key(newID[id.OperationID]()), Generation: 3, CredentialGeneration: 2,
		Verifier: "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy", Sealed: []byte{0, 255, '\\', '\'', 10}, ExpiresAt: &end,
		Actor: audit.ByKey("pgh_ABCDEFGH", newID[id.UserID]()), RequestID: "request-1", CreatedAt: epoch,
	}
}

// changeOfRole is a pending change of a role that is not stored yet.
func changeOfRole(r role.Role, kind role.Kind) role.Change {
	c := changeOf(r.DatabaseID)
	c.RoleID, c.Login, c.Username, c.Kind = r.ID, "", r.Username, kind
	if kind != role.Rotation {
		c.Verifier, c.Sealed, c.ExpiresAt = "", nil, nil
	}
	return c
}

func addingChange(c role.Change) transaction {
	return writing(ports.Tx.RoleChanges, ports.RoleChanges.Add, c)
}

func savingChange(c role.Change) transaction {
	return writing(ports.Tx.RoleChanges, ports.RoleChanges.Save, c)
}

func (w *world) storedChange(db id.DatabaseID, of id.OperationID) role.Change {
	w.Helper()
	return read2(w, ports.Tx.RoleChanges, ports.RoleChanges.Get, db, of)
}

// errUnfinished is what keeps a second change from beginning.
var errUnfinished = fault.New(fault.ManagedRoleConflict, "")

func changeComesBack(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	for _, c := range []role.Change{
		changeOf(db), changeOfRole(r, role.Rotation), changeOfRole(r, role.Revocation), changeOfRole(r, role.Expiry),
		changeOfRole(r, role.Removal),
	} {
		w.update(addingChange(c))
		w.equal(string(c.Kind)+" by ID", w.storedChange(db, c.ID), c)
		w.equal(string(c.Kind)+" by key", read2(w, ports.Tx.RoleChanges, ports.RoleChanges.ByKey, db, c.Key), c)
		w.equal(string(c.Kind)+" pending", read(w, ports.Tx.RoleChanges, ports.RoleChanges.Pending, db), c)
		c.Revealed, c.Refusal = true, "refused"
		c.Generation, c.CredentialGeneration = c.Generation+90, c.CredentialGeneration+91
		w.update(savingChange(c))
		w.equal("as saved", w.storedChange(db, c.ID), c)
		end := role.Completed
		if c.Kind == role.Removal {
			end = role.Refused
		}
		c = c.Ended(end, minutes(11))
		w.update(savingChange(c))
		w.equal("as ended", w.storedChange(db, c.ID), c)
	}
	for i, login := range database.Managed.Logins() {
		c := changeOf(db).Ended(role.Completed, minutes(i))
		c.Login = login
		w.update(addingChange(c))
		w.equal("of "+string(login), w.storedChange(db, c.ID), c)
	}
}

func changeIdentityStays(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	c := changeOf(db)
	w.update(addingChange(c))
	changed := c
	changed.RoleID, changed.Login, changed.Username, changed.Key = r.ID, "", "elsewhere", "k2"
	changed.ExpiresAt, changed.Actor, changed.RequestID, changed.CreatedAt = nil, audit.System, "request-2", minutes(9)
	w.update(savingChange(changed))
	w.equal("what cannot change", w.storedChange(db, c.ID), c)
	w.unknown("saving what does not exist", savingChange(changeOf(db)))
	moved := c
	moved.DatabaseID, moved.Refusal = w.addDatabase("other").ID, "refused"
	w.unknown("saving it as another database's", savingChange(moved))
	w.equal("after that", w.storedChange(db, c.ID), c)
}

func changeBelongs(w *world) {
	db, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	c := changeOf(db)
	w.update(addingChange(c))
	for what, miss := range map[string]func(context.Context, ports.RoleChanges) (role.Change, error){
		"a change through another database": func(ctx context.Context, changes ports.RoleChanges) (role.Change, error) {
			return changes.Get(ctx, other, c.ID)
		},
		"an unknown change": func(ctx context.Context, changes ports.RoleChanges) (role.Change, error) {
			return changes.Get(ctx, db, newID[id.OperationID]())
		},
		"an ID that is none": func(ctx context.Context, changes ports.RoleChanges) (role.Change, error) {
			return changes.Get(ctx, db, "no-uuid")
		},
		"another database's key": func(ctx context.Context, changes ports.RoleChanges) (role.Change, error) {
			return changes.ByKey(ctx, other, c.Key)
		},
		"another database's pending change": func(ctx context.Context, changes ports.RoleChanges) (role.Change, error) {
			return changes.Pending(ctx, other)
		},
	} {
		w.missing(what, func(ctx context.Context, tx ports.Tx) error {
			got, err := miss(ctx, tx.RoleChanges())
			w.equal("what comes with the error", got, role.Change{})
			return err
		})
	}
	w.unknown("a change of no database", addingChange(changeOf(newID[id.DatabaseID]())))
	w.unknown("a change of no role", addingChange(changeOfRole(roleOf(other, 1), role.Revocation)))
	theirs := changeOf(other)
	theirs.Key = c.Key // keys, and what is pending, are those of one database
	w.update(addingChange(theirs))
}

func onePending(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	first := changeOf(db)
	w.update(addingChange(first))
	w.refused("a second change of the login", errUnfinished, addingChange(changeOf(db)))
	w.refused("a change of a role meanwhile", errUnfinished, addingChange(changeOfRole(r, role.Removal)))
	w.update(addingChange(changeOf(db).Ended(role.Completed, epoch))) // which is not pending
	for _, end := range []role.ChangeStatus{role.Completed, role.Refused} {
		w.update(savingChange(first.Ended(end, minutes(2))))
		w.missing("a pending change", reading(ports.Tx.RoleChanges, ports.RoleChanges.Pending, db))
		first = changeOfRole(r, role.Revocation)
		w.update(addingChange(first))
	}
}

func onePendingOfMany(w *world) {
	db := w.addDatabase("shop").ID
	began := w.race(8, errUnfinished, func(int) transaction { return addingChange(changeOf(db)) })
	w.equal("changes that began", began, 1)
}

func changeKeyUsedOnce(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	c := changeOfRole(r, role.Rotation)
	w.update(addingChange(c))
	for _, status := range []role.ChangeStatus{role.Pending, role.Completed, role.Refused} {
		if status != role.Pending {
			w.update(savingChange(c.Ended(status, minutes(1))))
		}
		again := changeOf(db)
		again.Key = c.Key
		w.refused("the key of a change that is "+string(status), errUnfinished, addingChange(again))
		w.refused("the same, ended", errUnfinished, addingChange(again.Ended(role.Completed, epoch)))
	}
	w.update(savingRole(in(role.Removed, r)))
	w.equal("the change of a removed role",
		read2(w, ports.Tx.RoleChanges, ports.RoleChanges.ByKey, db, c.Key), c.Ended(role.Refused, minutes(1)))
}

func changeIsWhole(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	wrong := map[string]func() role.Change{
		"a role and a login":      func() role.Change { c := changeOf(db); c.RoleID = r.ID; return c },
		"neither role nor login":  func() role.Change { c := changeOf(db); c.Login = ""; return c },
		"pending, ended":          func() role.Change { c := changeOf(db); c.EndedAt = c.ExpiresAt; return c },
		"completed, without end":  func() role.Change { c := changeOf(db).Ended(role.Completed, epoch); c.EndedAt = nil; return c },
		"rotation, no password":   func() role.Change { c := changeOf(db); c.Sealed = nil; return c },
		"completed, password":     func() role.Change { c := changeOf(db); c.Status, c.EndedAt = role.Completed, &epoch; return c },
		"revocation and password": func() role.Change { c := changeOf(db); c.Kind = role.Revocation; return c },
	}
	for what, c := range wrong {
		w.fails(fmt.Sprintf("%s: was added", what), addingChange(c()))
	}
	c := changeOf(db)
	w.update(addingChange(c))
	for what, change := range map[string]func(*role.Change){
		"pending, ended":      func(c *role.Change) { c.EndedAt = c.ExpiresAt },
		"completed, no end":   func(c *role.Change) { c.Status, c.Sealed = role.Completed, nil },
		"completed, password": func(c *role.Change) { c.Status, c.EndedAt = role.Completed, c.ExpiresAt },
		"no password":         func(c *role.Change) { c.Sealed = nil },
	} {
		changed := c
		change(&changed)
		w.fails(fmt.Sprintf("%s: was saved", what), savingChange(changed))
	}
	w.equal("what is stored", w.storedChange(db, c.ID), c)
}

func changesAreListed(w *world) {
	db := w.addDatabase("shop").ID
	var want []role.Change
	for i := range 3 {
		c := changeOf(db)
		c.CreatedAt = minutes(i)
		if i < 2 {
			c = c.Ended(role.Refused, minutes(5))
		}
		w.update(addingChange(c))
		want = append([]role.Change{c}, want...)
	}
	w.update(addingChange(changeOf(w.addDatabase("other").ID)))
	w.equal("the changes", read(w, ports.Tx.RoleChanges, ports.RoleChanges.List, db), want)
}

func changesAreStuck(w *world) {
	other := w.addServer("another", 1)
	stuck := func(what string, want ...role.Change) {
		w.Helper()
		w.equal(what, read0(w, ports.Tx.RoleChanges, ports.RoleChanges.Stuck), []ports.ServerTally{
			{Server: other.Name}, tallyOf(w, want, func(c role.Change) time.Time { return c.CreatedAt }),
		})
	}
	var all []role.Change
	for i := range 3 {
		c := changeOf(w.addDatabase(numbered(i)).ID)
		w.update(addingChange(c))
		all = append(all, c)
	}
	stuck("pending changes alone")
	for _, c := range all[:2] {
		c.Refusal = "agent refused (failed)"
		w.update(savingChange(c))
	}
	stuck("two that are refused", all[:2]...)
	ended := all[0].Ended(role.Refused, minutes(1))
	ended.Refusal = "agent refused (failed)"
	w.update(savingChange(ended))
	w.update(savingChange(all[1]))
	stuck("one has ended, the other is not refused any more")
}
