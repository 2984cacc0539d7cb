package admin_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

const shop = "00000000-0000-4000-8000-000000000001"

// shared is a database of an account, with a member, bob, who is invited a second time under another address.
func (c console) shared(owner, bob string) {
	c.t.Helper()
	server := text(c.t, c.does("server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:1",
		"--agent-secret="+agentSecret, "--public-host=h", "--connections=0"), "serverId")
	now := time.Now().UTC()
	invited := member.Invitation{
		ID: "00000000-0000-4000-8000-000000000003", AccountID: id.AccountID(owner), DatabaseID: shop, Email: "robert@example.com",
		Role: account.Viewer,
	}.Opened(token.Of("token"), now)
	store := check.Must(postgres.Open(c.t.Context(), postgres.Config{URL: c.url}))(c.t)
	defer func() { check.NoError(c.t, store.Close()) }()
	check.NoError(c.t, store.Update(c.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		err := tx.Databases().Add(ctx, database.Record{
			ID: shop, AccountID: id.AccountID(owner), ServerID: id.ServerID(server), Name: "shop", DisplayName: "Shop",
			PostgresVersion: pgversion.Default,
			RoleModel:       database.Managed, Schedule: database.NoSchedule, Status: database.Active, Settings: database.NoSettings(),
			Overlay: database.Overlay{OverlayStatus: database.NoOverlay}, CreatedAt: now,
		})
		if err != nil {
			return err
		}
		if err := tx.Members().Set(ctx, member.Membership{
			ID: "00000000-0000-4000-8000-000000000002", DatabaseID: shop, UserID: id.UserID(bob), Role: account.Admin, CreatedAt: now,
		}); err != nil {
			return err
		}
		return tx.Invitations().Add(ctx, invited)
	}))
}

func TestAnOperatorListsAndRemovesMembers(t *testing.T) {
	c := newConsole(t)
	ada := c.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=free")
	bob := c.does("user", "create", "--email=bob@example.com", "--name=Bob")
	c.shared(text(t, ada, "accountId"), text(t, bob, "userId"))
	list := func(want ...string) {
		t.Helper()
		var lines []string
		for _, p := range c.lists("member", "list", "--database=shop") {
			lines = append(lines, fmt.Sprint(p["kind"], p["id"], p["userId"], p["email"], p["name"], p["role"]))
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	}
	owner := fmt.Sprint("owner", nil, ada["userId"], "ada@example.com", "Ada", "owner")
	list(owner, fmt.Sprint("member", "00000000-0000-4000-8000-000000000002", bob["userId"], "bob@example.com", "Bob", "admin"),
		fmt.Sprint("invitation", "00000000-0000-4000-8000-000000000003", nil, "robert@example.com", nil, "viewer"))
	remove := []string{"member", "remove", "--database=" + shop}
	if got := c.does(append(remove, "--email=Bob@Example.com")...); got["memberships"] != 1.0 || got["invitations"] != 0.0 {
		t.Errorf("%v", got)
	}
	if got := c.does(append(remove, "--email=robert@example.com")...); got["memberships"] != 0.0 || got["invitations"] != 1.0 {
		t.Errorf("%v", got)
	}
	list(owner)
	for _, nobody := range []string{"bob@example.com", "ada@example.com"} {
		c.refuses("MEMBER_NOT_FOUND", append(remove, "--email="+nobody)...)
	}
	c.refuses("email: must be a mail address", append(remove, "--email=")...)
	c.refuses("database: no database is called", "member", "list", "--database=00000000-0000-4000-8000-000000000000")
	c.refuses(`"email" not set`, remove...)
}
