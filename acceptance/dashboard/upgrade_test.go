package dashboard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// upgraded has the record of a database say that it came to PostgreSQL 18 from 16.
func (w *world) upgraded(path string) {
	w.Helper()
	w.ok(w.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, id.DatabaseID(strings.TrimPrefix(path, "/databases/")), func(r *database.Record) error {
			r.PostgresVersion, r.WayBack = 18, 16
			return nil
		})
	}))
}

// The page of a database says where its way back leads until its owner, or an operator, confirms the upgrade.
func TestAnUpgradeOnThePages(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("Ada", account.Pro), w.person("Bob", account.Pro)
	shop := ada.makes("shop")
	ada.open(shop).lacks("Upgrade of PostgreSQL")
	ada.open(shop+"/members").press("Add the person", "E-mail address", bob.email, "Role", "admin")
	w.upgraded(shop)
	bob.open(shop).sees("It came from PostgreSQL 16 to 18.").lacks("Confirm the upgrade")
	ada.open(shop).sees("may go back to 16").press("Confirm the upgrade").sees("The upgrade is confirmed.").lacks("PostgreSQL 16")

	w.upgraded(shop)
	grace, _ := w.operator("Grace")
	grace.open("/operator/databases?q=shop").follow("shop").sees("may go back to 16").
		press("Confirm the upgrade", "Why", "a ticket").sees("No way back is open.").lacks("may go back")
	ada.open(shop+"/activity").sees("database upgrade confirmed", "a ticket")
}
