package controlplane_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// finds wants the names of a page, and returns its entries and the cursor of the next one.
func (c *crowd) finds(
	by access.Caller, of database.Listing, p ports.Page, names ...string,
) (list []database.Listed, next *ports.Position) {
	c.t.Helper()
	list, next, err := c.Databases.Find(c.ctx, by, of, p)
	ok(c.t, err)
	var got []string
	for _, r := range list {
		got = append(got, r.Name)
	}
	if !slices.Equal(got, names) {
		c.t.Errorf("%+v: %v, want %v", of, got, names)
	}
	return list, next
}

func TestAPersonFindsDatabases(t *testing.T) {
	c := newCrowd(t)
	shop := c.made("shop").Record.ID
	c.made("orders")
	c.made("stock")
	c.backUp(c.reached(shop))
	made := c.backups(c.reached(shop))[0]
	owner, guest := c.person(), c.guest(shop, account.Developer)

	byName := database.Listing{By: database.ByName, Descending: true}
	list, next := c.finds(owner, byName, ports.Page{Limit: 2}, "stock", "shop")
	if at := list[1].VerifiedBackupAt; at == nil || !at.Equal(made.CreatedAt) || list[0].VerifiedBackupAt != nil {
		t.Errorf("the newest backups are %v and %v, want %v", list[0].VerifiedBackupAt, at, made.CreatedAt)
	}
	equal(t, "the owner's standing", list[0].Standing, account.Owner)
	_, end := c.finds(owner, byName, ports.Page{Limit: 2, After: must(ports.ParseCursor(next.Cursor()))(t)}, "orders")
	if end != nil {
		t.Errorf("after the last page comes %+v", end)
	}
	list, _ = c.finds(guest, database.Listing{Text: " A SHOP ", Whose: database.Shared}, ports.Page{}, "shop")
	equal(t, "the guest's standing", list[0].Standing, account.Developer)
	c.finds(guest, database.Listing{Whose: database.Own}, ports.Page{})

	for what, of := range map[string]database.Listing{
		"a position of another order": {By: database.BySize}, "a text that is none": {Text: "\x00"},
	} {
		if _, _, err := c.Databases.Find(c.ctx, owner, of, ports.Page{After: next}); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
