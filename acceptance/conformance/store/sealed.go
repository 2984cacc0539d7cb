package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// SealedValues is the suite of ports.SealedValues.
func SealedValues(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"the walk meets every value once, in order", walkMeetsAll},
		{"a value is replaced where it is still the same", valueIsReplaced},
		{"who has no password is not met", passwordlessIsNotMet},
		{"who holds the database writes no old value over a new one", holderSeesNewValue},
		{"a password that moves during the walk is met", movedIsMet},
	})
}

// fillSealed stores two databases with a key of their backups, two logins, a role and a pending rotation each, a second server
// and two endpoints, a mail and an operation with a sealed input and a sealed result of each database, a second factor, and two
// keys for certificates, of which one is retired.
func fillSealed(w *world) (want []ports.SealedValue) {
	second := w.addServer("second", 1)
	for _, s := range []server.Server{w.server, second} {
		want = append(want,
			ports.SealedValue{Ref: "server/" + string(s.ID), Context: s.SecretContext(), Sealed: s.SealedSecret},
			ports.SealedValue{Ref: "archive-key/" + string(s.ID), Context: s.ArchiveContext(), Sealed: s.SealedArchiveKey},
		)
	}
	w.retires(w.addSigningKey(1), 2)
	k := w.addSigningKey(3)
	want = append(want, ports.SealedValue{
		Ref: "certificate-key/" + string(k.ID), Context: k.SecretContext(), Sealed: k.SealedSeed,
	})
	f := person.Factor{UserID: w.user.ID, SealedSecret: []byte("factor"), CreatedAt: epoch}
	w.update(writing(ports.Tx.Credentials, ports.Credentials.SetFactor, f))
	want = append(want, ports.SealedValue{
		Ref: "factor/" + string(f.UserID), Context: f.SecretContext(), Sealed: f.SealedSecret,
	})
	for i := range 2 {
		e := w.addEndpoint(func(e *webhook.Endpoint) { e.SealedSecret = []byte{byte(i)} })
		ref := "webhook/" + string(e.ID)
		want = append(want, ports.SealedValue{Ref: ref, Context: webhook.SecretContext(e.ID), Sealed: e.SealedSecret})
		r := w.addDatabase(numbered(i))
		m := w.addMail(r, epoch)
		ref = "mail/" + string(m.ID)
		want = append(want, ports.SealedValue{Ref: ref, Context: mail.SecretContext(m.ID), Sealed: m.SealedToken})
		o := w.addWork(r.ID, func(o *operation.Operation) { o.SealedInput, o.SealedResult = []byte("asked"), []byte("found") })
		want = append(want,
			ports.SealedValue{Ref: "operation-input/" + string(o.ID), Context: o.InputContext(), Sealed: o.SealedInput},
			ports.SealedValue{Ref: "operation-result/" + string(o.ID), Context: o.ResultContext(), Sealed: o.SealedResult},
		)
		key := backupKeyOf(r.ID)
		w.update(writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, key))
		ref = "backup-key/" + string(r.ID)
		want = append(want, ports.SealedValue{Ref: ref, Context: key.SecretContext(), Sealed: key.Sealed})
		for _, login := range []database.Login{database.OwnerLogin, database.ReadonlyLogin} {
			l := ownerOf(r.ID)
			l.Login, l.Generation, l.Sealed = login, int64(i+1), []byte(login)
			w.update(writing(ports.Tx.Logins, ports.Logins.Add, l))
			ref := "login/" + string(r.ID) + "/" + string(login)
			want = append(want, ports.SealedValue{Ref: ref, Context: l.Context(), Sealed: l.Sealed})
		}
	}
	want = append(want, fillRoles(w)...)
	slices.SortFunc(want, func(a, b ports.SealedValue) int { return cmp.Compare(a.Ref, b.Ref) })
	return want
}

// fillRoles stores two databases, one with a pending rotation of a role, one with one of a login.
func fillRoles(w *world) (want []ports.SealedValue) {
	for i := range 2 {
		db := w.addDatabase(numbered(100 + i)).ID
		r := w.addRole(db, 1, func(r *role.Role) { r.Sealed, r.CredentialGeneration = []byte("role"), int64(10+i) })
		c := changeOfRole(r, role.Rotation)
		if c.CredentialGeneration++; i == 1 {
			c = changeOf(db)
		}
		w.update(addingChange(c))
		want = append(want,
			ports.SealedValue{Ref: "role/" + string(r.ID), Context: r.SecretContext(), Sealed: r.Sealed},
			ports.SealedValue{Ref: "change/" + string(c.ID), Context: c.SecretContext(), Sealed: c.Sealed},
		)
	}
	return want
}

func walk(w *world, limit int) (values []ports.SealedValue) {
	w.Helper()
	after := ""
	for {
		batch := read2(w, ports.Tx.SealedValues, ports.SealedValues.Next, after, limit)
		if len(batch) == 0 {
			return values
		}
		if len(batch) > limit {
			w.Fatalf("%d values where at most %d were asked for", len(batch), limit)
		}
		values = append(values, batch...)
		after = batch[len(batch)-1].Ref
	}
}

func walkMeetsAll(w *world) {
	want := fillSealed(w)
	for limit := 1; limit <= len(want)+1; limit++ {
		w.equal("the walk", walk(w, limit), want)
	}
}

func valueIsReplaced(w *world) {
	want := fillSealed(w)
	for i, v := range want {
		replace := func(sealed string) transaction {
			return writing2(ports.Tx.SealedValues, ports.SealedValues.Replace, v, []byte(sealed))
		}
		w.update(replace("first"))
		w.update(replace("second")) // v is no longer what is stored
		want[i].Sealed = []byte("first")
		w.equal("after one was replaced", walk(w, 10), want)
	}
}

func passwordlessIsNotMet(w *world) {
	db := w.addDatabase("shop").ID
	for i, status := range role.Statuses {
		w.addRole(db, i+1, func(r *role.Role) { *r = in(status, *r) })
	}
	c := changeOf(db)
	w.update(addingChange(c))
	w.update(savingChange(c.Ended(role.Completed, epoch)))
	w.update(addingChange(changeOfRole(w.addRole(db, 50), role.Revocation)))
	met := map[string]int{}
	for _, v := range walk(w, 2) {
		met[v.Ref[:strings.Index(v.Ref, "/")]]++
	}
	w.equal("values by kind", met, map[string]int{"archive-key": 1, "role": len(role.Statuses) - 1, "server": 1})
}

// holderSeesNewValue replaces values while somebody holds the database, has read role and change, and is about to write them
// back as they were, as a rename and an attempt do.
func holderSeesNewValue(w *world) {
	db := w.addDatabase("shop").ID
	r := w.addRole(db, 1)
	c := changeOfRole(r, role.Rotation)
	w.update(addingChange(c))
	replaced := make(chan error, 1)
	read := sync.OnceFunc(func() {
		go func() {
			replaced <- w.Store.Update(w.Context(), inOrder(
				writing2(ports.Tx.SealedValues, ports.SealedValues.Replace,
					ports.SealedValue{Ref: "change/" + string(c.ID), Sealed: c.Sealed}, []byte("new")),
				writing2(ports.Tx.SealedValues, ports.SealedValues.Replace,
					ports.SealedValue{Ref: "role/" + string(r.ID), Sealed: r.Sealed}, []byte("new"))))
		}()
		time.Sleep(200 * time.Millisecond) // time in which it would be done, if it did not wait
	})
	w.update(func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Databases().Lock(ctx, db); err != nil {
			return err
		}
		renamed, err := tx.Roles().Get(ctx, db, r.ID)
		if err != nil {
			return err
		}
		attempted, err := tx.RoleChanges().Pending(ctx, db)
		if err != nil {
			return err
		}
		read()
		renamed.DisplayName, attempted.Refusal = "Renamed", "refused"
		if err := tx.Roles().Save(ctx, renamed); err != nil {
			return err
		}
		return tx.RoleChanges().Save(ctx, attempted)
	})
	noError(w, <-replaced)
	got, change := w.storedRole(db, r.ID), w.storedChange(db, c.ID)
	w.equal("the role's password", string(got.Sealed), "new")
	w.equal("the change's password", string(change.Sealed), "new")
	w.equal("what the holder has written", got.DisplayName, "Renamed")
	w.equal("what the holder has written", change.Refusal, "refused")
}

// movedIsMet completes a rotation at every point of a walk: whatever the order, the new password is met somewhere.
func movedIsMet(w *world) {
	for limit := 1; limit <= 3; limit++ {
		for when := range 6 {
			db := w.addDatabase(numbered(10*limit + when)).ID
			r := w.addRole(db, 1)
			c := changeOfRole(r, role.Rotation)
			c.Sealed = []byte(c.ID)
			w.update(addingChange(c))
			met, after := false, ""
			for i := 0; ; i++ {
				if i == when {
					r.Verifier, r.Sealed = c.Verifier, c.Sealed
					w.update(savingChange(c.Ended(role.Completed, epoch)))
					w.update(savingRole(r))
				}
				batch := read2(w, ports.Tx.SealedValues, ports.SealedValues.Next, after, limit)
				if len(batch) == 0 {
					break
				}
				for _, v := range batch {
					met = met || string(v.Sealed) == string(c.ID)
				}
				after = batch[len(batch)-1].Ref
			}
			if !met {
				w.Errorf("a password that moved after %d batches of %d was not met", when, limit)
			}
		}
	}
}
