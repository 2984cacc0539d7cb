package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
)

// later lets the next round come.
func (w *world) later(after time.Duration) {
	w.t.Helper()
	w.clock.Advance(after)
	ok(w.t, w.Rounds.Once(w.ctx))
}

// An agent knows whose a database is as soon as it has made it.
func TestAgentsAreToldWhoseTheDatabasesAre(t *testing.T) {
	w := newWorld(t)
	theirs, _, other := w.newAccount("other@example.org", account.Pro)
	shop := w.made("shop").Record
	blog := must(w.Databases.Create(w.ctx, other, request("blog")))(t).Record
	equal(t, "account of shop", w.server.AccountOf(shop.ID), w.account.ID)
	equal(t, "account of blog", w.server.AccountOf(blog.ID), theirs.ID)
}
