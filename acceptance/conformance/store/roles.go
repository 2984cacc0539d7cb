package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Roles is the suite of ports.Roles.
func Roles(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a role comes back as it was stored, in every status", roleComesBack},
		{"only what can change of a role is saved", roleIdentityStays},
		{"a role belongs to its database", roleBelongs},
		{"ordinals and keys are used once", roleUsedOnce},
		{"a list leaves removed roles out, by ordinal", rolesInOrder},
		{"a role has a password exactly while one is in force", rolePasswordFits},
		{"credentials expire, the earliest first", rolesExpire},
		{"credentials of a database that is not active do not expire", rolesOfInactiveWait},
		{"credentials do not expire while a change is pending", rolesWaitForAChange},
		{"credentials do not expire while an operation other than a backup is open", rolesWaitForAnOperation},
		{"a stored password is nobody else's", rolePasswordIsCopied},
		{"one of many makers gets the next ordinal", nextOrdinalIsTakenOnce},
	})
}

// roleOf is a ready role that is not stored yet.
func roleOf(db id.DatabaseID, ordinal int) role.Role {
	end := minutes(90)
	return role.Role{
		ID: newID[id.RoleID](), DatabaseID: db, Ordinal: ordinal, Username: role.ManagedRoles.Username(db, ordinal),
		DisplayName: "Läden 🛒", AccessProfile: role.ReadWrite, ConnectionLimit: 5, Status: role.Ready, CreatedAt: epoch,
		Key: idempotency.Key("key " + numbered(ordinal)), Fingerprint: "f00d", SetupID: newID[id.OperationID](), Generation: 3,
		CredentialGeneration: 2, CredentialExpiresAt: &end,
		Verifier: "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy", Sealed: []byte{0, 255, '\\', '\'', 10},
	}
}

// addRole stores a role after change.
func (w *world) addRole(db id.DatabaseID, ordinal int, change ...func(*role.Role)) role.Role {
	w.Helper()
	r := changed(roleOf(db, ordinal), change)
	w.update(addingRole(r))
	return r
}

func addingRole(r role.Role) transaction { return writing(ports.Tx.Roles, ports.Roles.Add, r) }

func savingRole(r role.Role) transaction { return writing(ports.Tx.Roles, ports.Roles.Save, r) }

func (w *world) storedRole(db id.DatabaseID, of id.RoleID) role.Role {
	w.Helper()
	return read2(w, ports.Tx.Roles, ports.Roles.Get, db, of)
}

func (w *world) listedRoles(db id.DatabaseID) []role.Role {
	w.Helper()
	return read(w, ports.Tx.Roles, ports.Roles.List, db)
}

// in returns the role in a status, with the password that it has there.
func in(s role.Status, r role.Role) role.Role {
	if r.Status = s; s == role.Revoked || s == role.Removed {
		return r.Forgotten()
	}
	return r
}

func roleComesBack(w *world) {
	db := w.addDatabase("shop").ID
	for i, status := range role.Statuses {
		r := w.addRole(db, i+1, func(r *role.Role) {
			if *r = in(status, *r); i%2 == 0 {
				r.CredentialExpiresAt = nil
			} else {
				r.ChangeID = newID[id.OperationID]()
			}
		})
		w.equal("as added, "+string(status), w.storedRole(db, r.ID), r)
		w.equal("by its key", read2(w, ports.Tx.Roles, ports.Roles.ByKey, db, r.Key), r)
	}
	r := w.addRole(db, 100)
	for _, status := range append(role.Statuses, role.Ready) {
		end := minutes(7)
		r.DisplayName, r.Generation, r.CredentialGeneration = string(status), r.Generation+1, r.CredentialGeneration+1
		r.ChangeID, r.CredentialExpiresAt, r.Verifier, r.Sealed = newID[id.OperationID](), &end, "other", []byte(status)
		r = in(status, r)
		w.update(savingRole(r))
		w.equal("as saved, "+string(status), w.storedRole(db, r.ID), r)
	}
	r.ChangeID, r.CredentialExpiresAt = "", nil
	w.update(savingRole(r))
	w.equal("without change and end", w.storedRole(db, r.ID), r)
}

func roleIdentityStays(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	changed := r
	changed.Ordinal, changed.Username, changed.AccessProfile, changed.ConnectionLimit = 9, "elsewhere", role.Custom, 99
	changed.CreatedAt, changed.Key, changed.Fingerprint, changed.SetupID = minutes(9), "k2", "f2", newID[id.OperationID]()
	w.update(savingRole(changed))
	w.equal("what cannot change", w.storedRole(db, r.ID), r)
	w.unknown("saving what does not exist", savingRole(roleOf(db, 2)))
	moved := r
	moved.DatabaseID, moved.DisplayName = w.addDatabase("other").ID, "stolen"
	w.unknown("saving it as another database's", savingRole(moved))
	w.equal("after that", w.storedRole(db, r.ID), r)
}

func roleBelongs(w *world) {
	db, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	r := w.addRole(db, 1)
	get := func(db id.DatabaseID, of id.RoleID) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Roles().Get(ctx, db, of)
			w.equal("what comes with the error", got, role.Role{})
			return err
		}
	}
	w.missing("a role through another database", get(other, r.ID))
	w.missing("a role through no database", get(newID[id.DatabaseID](), r.ID))
	w.missing("an unknown role", get(db, newID[id.RoleID]()))
	w.missing("an ID that is none", get(db, "no-uuid"))
	for _, key := range []idempotency.Key{r.Key, "unknown", ""} {
		w.missing("another database's key "+string(key), reading2(ports.Tx.Roles, ports.Roles.ByKey, other, key))
	}
	w.equal("the roles of another database", len(w.listedRoles(other)), 0)
	w.unknown("a role of no database", addingRole(roleOf(newID[id.DatabaseID](), 1)))
	w.addRole(other, 1, func(o *role.Role) { o.Key = r.Key }) // ordinals and keys are those of one database
}

func roleUsedOnce(w *world) {
	db := w.addDatabase("shop").ID
	for i, status := range []role.Status{role.Ready, role.Removed} {
		used := w.addRole(db, i+1, func(r *role.Role) { *r = in(status, *r) })
		sameOrdinal, sameKey, sameName := roleOf(db, 50), roleOf(db, 51), roleOf(db, 52)
		sameOrdinal.Ordinal, sameKey.Key, sameName.Username = used.Ordinal, used.Key, used.Username
		for what, r := range map[string]role.Role{"ordinal": sameOrdinal, "key": sameKey, "username": sameName, "ID": used} {
			w.fails(fmt.Sprintf("the %s of a role that is %s was used again", what, status), addingRole(r))
		}
	}
	w.equal("the roles that are there", len(w.listedRoles(db)), 1)
}

func rolesInOrder(w *world) {
	db := w.addDatabase("shop").ID
	var want []role.Role
	for ordinal := 12; ordinal > 0; ordinal-- { // 10 comes after 9, not after 1
		r := w.addRole(db, ordinal, func(r *role.Role) { *r = in(role.Statuses[ordinal%len(role.Statuses)], *r) })
		if r.Status != role.Removed {
			want = append([]role.Role{r}, want...)
		}
	}
	w.equal("the list", w.listedRoles(db), want)
	gone := in(role.Removed, want[0])
	w.update(savingRole(gone))
	w.equal("the list after a removal", w.listedRoles(db), want[1:])
	w.equal("the removed one by itself", w.storedRole(db, gone.ID), gone)
}

func rolePasswordFits(w *world) {
	db := w.addDatabase("shop").ID
	stored := w.addRole(db, 1)
	for _, status := range role.Statuses {
		wrong := []func(*role.Role){
			func(r *role.Role) { r.Sealed = nil }, // with a verifier
			func(r *role.Role) { r.Verifier = "" },
			func(r *role.Role) { r.Verifier, r.Sealed = "", nil },
		}
		if status == role.Revoked || status == role.Removed {
			wrong[2] = func(*role.Role) {}
		}
		for i, change := range wrong {
			added, saved := roleOf(db, 9), stored
			added.Status, saved.Status = status, status
			change(&added)
			change(&saved)
			w.fails(fmt.Sprintf("a role that is %s was added with a wrong password (%d)", status, i), addingRole(added))
			w.fails(fmt.Sprintf("a role was saved as %s with a wrong password (%d)", status, i), savingRole(saved))
		}
	}
	w.equal("what is stored", w.listedRoles(db), []role.Role{stored})
}

func rolePasswordIsCopied(w *world) {
	db := w.addDatabase("shop").ID
	r := roleOf(db, 1)
	want := r
	want.Sealed = append([]byte(nil), r.Sealed...)
	w.update(addingRole(r))
	r.Sealed[0] = 77
	w.equal("after the given bytes changed", w.storedRole(db, r.ID), want)
	w.storedRole(db, r.ID).Sealed[0] = 78
	w.listedRoles(db)[0].Sealed[0] = 79
	w.equal("after returned bytes changed", w.storedRole(db, r.ID), want)
	saved := want
	saved.Sealed = []byte("new")
	w.update(savingRole(saved))
	saved.Sealed[0] = 'x'
	w.equal("after saved bytes changed", string(w.storedRole(db, r.ID).Sealed), "new")
}

// nextOrdinalIsTakenOnce makes roles side by side as the use case does: under the lock, with the database's next ordinal.
func nextOrdinalIsTakenOnce(w *world) {
	const makers = 8
	db := w.addDatabase("shop").ID
	w.race(makers, nil, func(i int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			record, err := tx.Databases().Lock(ctx, db)
			if err != nil {
				return err
			}
			list, err := tx.Roles().List(ctx, db)
			if err != nil {
				return err
			}
			if len(list) != record.RoleOrdinal {
				w.Errorf("%d roles, the last ordinal is %d", len(list), record.RoleOrdinal)
			}
			record.RoleOrdinal++
			record.RoleGeneration++
			if err := tx.Databases().Save(ctx, record); err != nil {
				return err
			}
			r := roleOf(db, record.RoleOrdinal)
			r.Key = idempotency.Key(numbered(1000 + i))
			return tx.Roles().Add(ctx, r)
		}
	})
	for i, r := range w.listedRoles(db) {
		w.equal("an ordinal", r.Ordinal, i+1)
	}
	w.equal("the last ordinal", lock(w, db).RoleOrdinal, makers)
}
