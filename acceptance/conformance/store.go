package conformance

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
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

func errorRollsBack(w *world) {
	w.addDatabase("before")
	r := w.record("shop")
	w.refused("the caller's error", errChanged, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Databases().Add(ctx, r); err != nil {
			return err
		}
		return errChanged
	})
	w.missing("the database of the rolled-back transaction", reach(w, r.ID))
}

func panicRollsBack(w *world) {
	r := w.record("shop")
	func() {
		defer func() { _ = recover() }()
		_ = w.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Databases().Add(ctx, r); err != nil {
				w.Error(err)
			}
			panic("a bug in a use case")
		})
	}()
	w.missing("the database of the transaction that panicked", reach(w, r.ID))
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Add(ctx, r) })
}

func uncommittedIsUnseen(w *world) {
	w.addDatabase("before")
	r := w.record("shop")
	w.update(func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Databases().Add(ctx, r); err != nil {
			return err
		}
		w.missing("an uncommitted database, from outside", reach(w, r.ID))
		n, err := tx.Databases().Count(ctx, w.account.ID)
		w.equal("databases as the transaction counts them", n, 2)
		return err
	})
	w.view(reach(w, r.ID))
}

// reach looks a database up as its owner.
func reach(w *world, db id.DatabaseID) func(context.Context, ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		_, _, err := tx.Databases().Reach(ctx, ports.Viewer{AccountID: w.account.ID, UserID: w.user.ID, Scope: "full"}, db)
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
	for name, write := range map[string]func(ctx context.Context, tx ports.Tx) error{
		"AddUser": func(ctx context.Context, tx ports.Tx) error { return tx.Accounts().AddUser(ctx, w.user) },
		"LockForQuota": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Accounts().LockForQuota(ctx, w.account.ID)
			return err
		},
		"Add database": func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Add(ctx, w.record("x-1")) },
		"Lock":         func(ctx context.Context, tx ports.Tx) error { _, err := tx.Databases().Lock(ctx, r.ID); return err },
		"Save":         func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Save(ctx, r) },
		"Remove":       func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Remove(ctx, r.ID) },
		"Add audit": func(ctx context.Context, tx ports.Tx) error {
			return tx.Audit().Add(ctx, audit.Entry{ID: newID[id.AuditID]()})
		},
		"ClaimNext": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Operations().ClaimNext(ctx, ports.OperationClaim{Owner: "w", Now: epoch, Hold: 1})
			return err
		},
		"Lock work":  func(ctx context.Context, tx ports.Tx) error { _, err := tx.Operations().Lock(ctx, o.ID); return err },
		"SaveLeased": func(ctx context.Context, tx ports.Tx) error { return tx.Operations().SaveLeased(ctx, o) },
		"Claim": func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Idempotency().Claim(ctx, idempotency.Record{AccountID: w.account.ID})
			return err
		},
		"Add server":     func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Add(ctx, server.Server{}) },
		"SetMaintenance": func(ctx context.Context, tx ports.Tx) error { return tx.Switches().SetMaintenance(ctx, true) },
		"Replace": func(ctx context.Context, tx ports.Tx) error {
			return tx.SealedValues().Replace(ctx, ports.SealedValue{Ref: "server/" + string(w.server.ID)}, nil)
		},
		"Add endpoint":  func(ctx context.Context, tx ports.Tx) error { return tx.Webhooks().Add(ctx, w.endpoint()) },
		"Lock endpoint": func(ctx context.Context, tx ports.Tx) error { _, err := tx.Webhooks().Lock(ctx, e.ID); return err },
		"LockEnabled": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Webhooks().LockEnabled(ctx, w.account.ID)
			return err
		},
		"Save endpoint": saveEndpoint(e),
		"TakeEvents":    func(ctx context.Context, tx ports.Tx) error { _, err := tx.Deliveries().TakeEvents(ctx, 1); return err },
		"Add delivery":  addDeliveries(newDelivery(e, epoch)),
		"ClaimNext delivery": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Deliveries().ClaimNext(ctx, "d", epoch, 1, 1)
			return err
		},
		"Lock delivery": func(ctx context.Context, tx ports.Tx) error { _, err := tx.Deliveries().Lock(ctx, d.ID); return err },
		"Save delivery": saveDelivery(d, nil),
		"Abandon":       func(ctx context.Context, tx ports.Tx) error { return tx.Deliveries().Abandon(ctx, e.ID, epoch) },
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
		err := other.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Add(ctx, r) })
		if err != nil {
			return err
		}
		return reach(w, r.ID)(ctx, tx)
	})
}

func endedContext(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	r := w.record("shop")
	err := w.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Databases().Add(ctx, r); err != nil {
			return err
		}
		cancel()
		return tx.Databases().Save(ctx, r)
	})
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
	const hosts, each = 4, 10
	together(w.T, hosts, func(int) {
		host := w.another(w.T)
		for range each {
			err := host.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error {
				stored, err := tx.Databases().Lock(ctx, r.ID)
				if err != nil {
					return err
				}
				stored.AccessGeneration++
				return tx.Databases().Save(ctx, stored)
			})
			if err != nil {
				w.Error(err)
			}
		}
	})
	w.update(func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, r.ID)
		w.equal("the generation after all increments", stored.AccessGeneration, int64(hosts*each))
		return err
	})
	w.refused("locking a database that does not exist", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Databases().Lock(ctx, newID[id.DatabaseID]())
		return err
	})
}
