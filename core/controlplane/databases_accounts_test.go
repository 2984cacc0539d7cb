package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/operation"
)

// later lets the next round come.
func (w *world) later(after time.Duration) {
	w.t.Helper()
	w.clock.Advance(after)
	ok(w.t, w.Rounds.Once(w.ctx))
}

func TestAgentsAreToldWhoseTheDatabasesAre(t *testing.T) {
	w := newWorld(t)
	theirs, _, other := w.newAccount("other@example.org", account.Pro)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "told of nothing", w.server.Calls("SetAccounts"), 0)
	shop := w.made("shop").Record
	blog := must(w.Databases.Create(w.ctx, other, request("blog")))(t).Record
	w.later(30 * time.Second)
	equal(t, "account of shop", w.server.AccountOf(shop.ID), w.account.ID)
	equal(t, "account of blog", w.server.AccountOf(blog.ID), theirs.ID)
	for range 10 {
		w.later(30 * time.Second)
	}
	equal(t, "told while nothing changed", w.server.Calls("SetAccounts"), 1)
	news := w.made("news").Record
	w.later(30 * time.Second)
	equal(t, "account of news", w.server.AccountOf(news.ID), w.account.ID)
	equal(t, "told after a change", w.server.Calls("SetAccounts"), 2)
	w.later(10 * time.Minute)
	equal(t, "told again", w.server.Calls("SetAccounts"), 3)
}

func TestAgentsThatCannotBeToldYet(t *testing.T) {
	w := newWorld(t)
	shop := w.made("shop").Record
	w.server.SetUnreachable(true)
	w.later(30 * time.Second)
	w.server.SetUnreachable(false)
	w.losing("SetAccounts", 0)
	for range 3 {
		w.later(30 * time.Second)
	}
	equal(t, "told until it has answered", w.server.Calls("SetAccounts"), 2)
	equal(t, "account of shop", w.server.AccountOf(shop.ID), w.account.ID)
}

// A backup of a database that has just been made counts for its account all the same.
func TestAnAgentIsToldWhoseABackupIs(t *testing.T) {
	w := newWorld(t)
	r, backup := w.started()
	w.runOnce()
	equal(t, "account", w.server.AccountOf(r.Record().ID), w.account.ID)
	w.work(w.ControlPlane)
	equal(t, "told", w.server.Calls("SetAccounts"), 1)
	equal(t, "status", w.operation(backup.ID).Status, operation.Succeeded)
}
