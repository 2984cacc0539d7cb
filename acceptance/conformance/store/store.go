// Package store holds the suites of the metadata: one for ports.Store, and one for each of its repositories.
package store

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Store is the suite of ports.Store: what holds whatever is stored.
func Store(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an error rolls everything back", errorRollsBack},
		{"a panic rolls everything back", panicRollsBack},
		{"what is not committed is seen by its transaction alone", uncommittedIsUnseen},
		{"a refused write ends its transaction", refusalEndsTransaction},
		{"a view cannot write", viewCannotWrite},
		{"a view sees each commit", viewSeesCommits},
		{"an ended context is told as such", endedContext},
		{"a locked record waits for the other transaction", lockWaits},
	})
}

var errChanged = errors.New("the caller has changed its mind")

var changesItsMind transaction = func(context.Context, ports.Tx) error { return errChanged }

func errorRollsBack(w *world) {
	w.addDatabase("before")
	r, waits, made, key := w.record("shop"), w.event(1), w.event(2), w.request("k")
	w.update(addEvent(waits))
	w.refused("the caller's error", errChanged, inOrder(
		writing(ports.Tx.Databases, ports.Databases.Add, r), writing(ports.Tx.Audit, ports.Audit.Add, w.entry(r.ID, 0)),
		reading(ports.Tx.Deliveries, ports.Deliveries.TakeEvents, 5), addEvent(made),
		reading(ports.Tx.Trusts, ports.Trusts.Spend, spent(1, minutes(1))),
		func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Idempotency().Claim(ctx, key)
			return err
		}, changesItsMind,
	))
	w.missing("the database of the rolled-back transaction", reach(w, r.ID))
	w.equal("its log", len(read2(w, ports.Tx.Audit, ports.Audit.List, r.ID, ports.Page{})), 0)
	w.equal("the outbox", w.Events(w.T), []ports.OutboxEvent{waits})
	w.equal("an event that it took", w.mustTake(5), []ports.OutboxEvent{waits})
	w.equal("a token that it spent", w.spends(w.Store, spent(1, minutes(1))), true)
	w.wantClaim("a key that it claimed", key, key, true)
}

func panicRollsBack(w *world) {
	r := w.record("shop")
	func() {
		defer func() { _ = recover() }()
		_ = w.Store.Update(w.Context(), inOrder(writing(ports.Tx.Databases, ports.Databases.Add, r),
			func(context.Context, ports.Tx) error { panic("a bug in a use case") }))
	}()
	w.missing("the database of the transaction that panicked", reach(w, r.ID))
	w.update(writing(ports.Tx.Databases, ports.Databases.Add, r))
}

func uncommittedIsUnseen(w *world) {
	w.addDatabase("before")
	r := w.record("shop")
	w.update(inOrder(writing(ports.Tx.Databases, ports.Databases.Add, r), func(ctx context.Context, tx ports.Tx) error {
		w.missing("an uncommitted database, from outside", reach(w, r.ID))
		n, err := tx.Databases().Count(ctx, w.account.ID)
		w.equal("databases as the transaction counts them", n, 2)
		return err
	}))
	w.view(reach(w, r.ID))
}

// reach looks a database up as its owner.
func reach(w *world, db id.DatabaseID) func(context.Context, ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		_, _, err := access.See(ctx, tx, database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, Scope: "full"}, db)
		return err
	}
}

func refusalEndsTransaction(w *world) {
	w.addDatabase("taken")
	kept := w.record("kept")
	err := w.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Databases().Add(ctx, kept); err != nil {
			return err
		}
		if err := tx.Databases().Add(ctx, w.record("taken")); !sameError(err, database.ErrNameTaken()) {
			w.Errorf("a taken name: %v", err)
		}
		return nil // as if nothing had happened
	})
	if err == nil {
		w.Error("a transaction was committed although one of its statements was refused")
	}
	w.missing("a write of the ended transaction", reach(w, kept.ID))
}

func viewCannotWrite(w *world) {
	r := w.addDatabase("shop")
	o := w.addWork(r.ID)
	e := w.addEndpoint()
	d := w.addDelivery(e)
	added, c := w.addRole(r.ID, 1), changeOf(r.ID)
	w.update(addingChange(c))
	for name, write := range map[string]transaction{
		"AddUser":         writing(ports.Tx.Accounts, ports.Accounts.AddUser, w.user),
		"LockForQuota":    reading(ports.Tx.Accounts, ports.Accounts.LockForQuota, w.account.ID),
		"Set member":      writing(ports.Tx.Members, ports.Members.Set, member.Membership{DatabaseID: r.ID, UserID: w.user.ID}),
		"Remove member":   writing(ports.Tx.Members, ports.Members.Remove, member.Membership{DatabaseID: r.ID}),
		"Add session":     writing(ports.Tx.Sessions, ports.Sessions.Add, w.session(w.user.ID, 0)),
		"Touch session":   writing2(ports.Tx.Sessions, ports.Sessions.Touch, newID[id.SessionID](), epoch),
		"Lock session":    reading(ports.Tx.Sessions, ports.Sessions.Lock, newID[id.SessionID]()),
		"Set password":    writing2(ports.Tx.Credentials, ports.Credentials.SetPassword, w.user.ID, "x"),
		"Lock user":       reading(ports.Tx.Credentials, ports.Credentials.Lock, w.user.ID),
		"Remove factor":   writing(ports.Tx.Credentials, ports.Credentials.RemoveFactor, w.user.ID),
		"Add identity":    writing(ports.Tx.Identities, ports.Identities.Add, person.Identity{UserID: w.user.ID}),
		"Add invitation":  writing(ports.Tx.Invitations, ports.Invitations.Add, w.invitation(r.ID, "x@example.com")),
		"Save invitation": writing(ports.Tx.Invitations, ports.Invitations.Save, w.invitation(r.ID, "x@example.com")),
		"Forget":          writing2(ports.Tx.Invitations, ports.Invitations.Forget, epoch, 1),
		"Spend":           reading(ports.Tx.Trusts, ports.Trusts.Spend, spent(1, epoch)),
		"Add trust":       writing(ports.Tx.Trusts, ports.Trusts.Add, citoken.Trust{}),
		"Remove trust":    writing2(ports.Tx.Trusts, ports.Trusts.Remove, newID[id.TrustID](), epoch),
		"Add database":    writing(ports.Tx.Databases, ports.Databases.Add, w.record("x-1")),
		"Lock":            reading(ports.Tx.Databases, ports.Databases.Lock, r.ID),
		"Save":            writing(ports.Tx.Databases, ports.Databases.Save, r),
		"Remove":          writing(ports.Tx.Databases, ports.Databases.Remove, r.ID),
		"Add audit":       writing(ports.Tx.Audit, ports.Audit.Add, audit.Entry{ID: newID[id.AuditID]()}),
		"ClaimNext": reading(ports.Tx.Operations, ports.Operations.ClaimNext,
			ports.OperationClaim{Owner: "w", Now: epoch, Hold: 1}),
		"Lock work":  reading(ports.Tx.Operations, ports.Operations.Lock, o.ID),
		"SaveLeased": writing(ports.Tx.Operations, ports.Operations.SaveLeased, o),
		"Claim": func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Idempotency().Claim(ctx, idempotency.Record{AccountID: w.account.ID})
			return err
		},
		"Replace login":  writing(ports.Tx.Logins, ports.Logins.Replace, ownerOf(r.ID)),
		"Add role":       addingRole(roleOf(r.ID, 2)),
		"Save role":      savingRole(in(role.Removed, added)),
		"Add change":     addingChange(changeOf(r.ID).Ended(role.Completed, epoch)),
		"Save change":    savingChange(c.Ended(role.Completed, epoch)),
		"Rooms":          reading(ports.Tx.Servers, ports.Servers.Rooms, ""),
		"Lock server":    writing(ports.Tx.Servers, ports.Servers.Lock, w.server.ID),
		"Add server":     writing(ports.Tx.Servers, ports.Servers.Add, server.Server{}),
		"SetMaintenance": writing(ports.Tx.Switches, ports.Switches.SetMaintenance, true),
		"Replace": writing2(ports.Tx.SealedValues, ports.SealedValues.Replace,
			ports.SealedValue{Ref: "server/" + string(w.server.ID)}, nil),
		"Add endpoint":  writing(ports.Tx.Webhooks, ports.Webhooks.Add, w.endpoint()),
		"Lock endpoint": reading(ports.Tx.Webhooks, ports.Webhooks.Lock, e.ID),
		"LockEnabled":   reading(ports.Tx.Webhooks, ports.Webhooks.LockEnabled, w.account.ID),
		"Save endpoint": saveEndpoint(e),
		"TakeEvents":    reading(ports.Tx.Deliveries, ports.Deliveries.TakeEvents, 1),
		"Add delivery":  addDeliveries(newDelivery(e, epoch)),
		"ClaimNext delivery": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Deliveries().ClaimNext(ctx, "d", epoch, 1, 1)
			return err
		},
		"Lock delivery": reading(ports.Tx.Deliveries, ports.Deliveries.Lock, d.ID),
		"Save delivery": saveDelivery(d, nil),
		"Add mail":      addMail(w.mail(r, epoch)),
		"Save mail":     saveMail(w.mail(r, epoch)),
		"Withdraw":      writing2(ports.Tx.Mails, ports.Mails.Withdraw, newID[id.InvitationID](), epoch),
		"ClaimNext mail": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Mails().ClaimNext(ctx, "d", epoch, 1, 1)
			return err
		},
		"Add tombstone": reading(ports.Tx.Deletions, ports.Deletions.Add, deletion.Tombstone{DatabaseID: r.ID}),
		"SetRecovery":   writing2(ports.Tx.Deletions, ports.Deletions.SetRecovery, r.ID, o.ID),
		"Abandon":       writing2(ports.Tx.Deliveries, ports.Deliveries.Abandon, e.ID, epoch),
	} {
		if err := w.Store.View(w.Context(), write); !errors.Is(err, ports.ErrReadOnly) {
			w.Errorf("%s in a view: %v", name, err)
		}
	}
}

func viewSeesCommits(w *world) {
	other := w.another(w.T)
	w.view(func(ctx context.Context, tx ports.Tx) error {
		r := w.record("shop")
		if err := reach(w, r.ID)(ctx, tx); !errors.Is(err, ports.ErrNoRow) {
			w.Errorf("before the commit: %v", err)
		}
		err := other.Store.Update(ctx, writing(ports.Tx.Databases, ports.Databases.Add, r))
		if err != nil {
			return err
		}
		return reach(w, r.ID)(ctx, tx)
	})
}

func endedContext(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	r := w.record("shop")
	err := w.Store.Update(ctx, inOrder(
		writing(ports.Tx.Databases, ports.Databases.Add, r),
		func(context.Context, ports.Tx) error { cancel(); return nil }, writing(ports.Tx.Databases, ports.Databases.Save, r),
	))
	if !errors.Is(err, context.Canceled) {
		w.Errorf("a statement after its context ended: %v", err)
	}
	w.missing("the database of the canceled transaction", reach(w, r.ID))
	if err := w.Store.View(ctx, reach(w, r.ID)); !errors.Is(err, context.Canceled) {
		w.Errorf("a view in an ended context: %v", err)
	}
}

func lockWaits(w *world) {
	r := w.addDatabase("shop")
	const each = 40
	w.race(each, nil, func(int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			stored, err := tx.Databases().Lock(ctx, r.ID)
			if err != nil {
				return err
			}
			stored.AccessGeneration++
			return tx.Databases().Save(ctx, stored)
		}
	})
	w.equal("the generation after all increments", lock(w, r.ID).AccessGeneration, int64(each))
	w.unknown("locking a database that does not exist", reading(ports.Tx.Databases, ports.Databases.Lock, newID[id.DatabaseID]()))
}
