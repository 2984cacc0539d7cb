package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/ports"
)

// creating is a database whose creation nobody has begun.
func (c console) creating(on string) (db, op string) {
	c.t.Helper()
	owner := text(c.t, c.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=pro"), "accountId")
	now := time.Now().UTC()
	store := check.Must(postgres.Open(c.t.Context(), postgres.Config{URL: c.url}))(c.t)
	defer func() { check.NoError(c.t, store.Close()) }()
	o := operation.Operation{
		ID: "00000000-0000-4000-8000-000000000009", AccountID: id.AccountID(owner), DatabaseID: shop, ServerID: id.ServerID(on),
		Kind: "create", Status: operation.Queued, Stage: operation.StageQueued, CreatedAt: now, Lease: operation.Lease{NotBefore: now},
	}
	check.NoError(c.t, store.Update(c.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		err := tx.Databases().Add(ctx, database.Record{
			ID: shop, AccountID: id.AccountID(owner), ServerID: id.ServerID(on), Name: "shop", DisplayName: "Shop",
			PostgresVersion: pgversion.Default,
			RoleModel:       database.Managed, Schedule: database.NoSchedule, Status: database.Creating, Settings: database.NoSettings(),
			Overlay: database.Overlay{OverlayStatus: database.NoOverlay}, CreatedAt: now,
		})
		if err != nil {
			return err
		}
		return tx.Operations().Add(ctx, o)
	}))
	return shop, string(o.ID)
}

// A creation on a server that is gone is found without a word of its database, and ended.
func TestAnOperatorEndsOperations(t *testing.T) {
	c := newConsole(t)
	server := text(t, c.does("server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:1",
		"--agent-secret="+agentSecret, "--public-host=h", "--connections=0"), "serverId")
	db, op := c.creating(server)
	for _, args := range [][]string{
		{}, {"--server=" + server}, {"--database=" + db}, {"--kind=create"}, {"--state=all"}, {"--state=queued"},
	} {
		rows := c.lists(append([]string{"operation", "list"}, args...)...)
		if len(rows) != 1 || rows[0]["operationId"] != op || rows[0]["type"] != "create" || rows[0]["database"] != "shop" ||
			rows[0]["server"] != "db1" || rows[0]["age"] == "" {
			t.Errorf("%v: %v", args, rows)
		}
	}
	if rows := c.lists("operation", "list", "--state=failed"); len(rows) != 0 {
		t.Error(rows)
	}
	const none = "00000000-0000-4000-8000-000000000000"
	c.refuses("server: no server is called", "operation", "list", "--server="+none)
	c.refuses("kind: must be one of", "operation", "list", "--kind=upload")
	c.refuses("state: must be open", "operation", "list", "--state=stuck")

	of := "--operation=" + op
	c.refuses("reason: must have", "operation", "fail", of, "--yes", "--reason= ")
	c.refuses("nothing listens at https://127.0.0.1:1", "operation", "fail", of, "--yes", "--reason=it burned")
	c.refuses("nothing listens at https://127.0.0.1:1", "operation", "retry", of, "--reason=it burned")
	c.refuses("pgherd admin server disable", "operation", "fail", of, "--yes", "--reason=it burned", "--server-gone")
	c.does("server", "disable", "--server="+server)
	if got := c.does("operation", "fail", of, "--yes", "--reason=it burned", "--server-gone"); got["status"] != "failed" {
		t.Errorf("%v", got)
	}
	c.refuses("has ended", "operation", "fail", of, "--yes", "--reason=it burned", "--server-gone")
	c.does("server", "remove", "--server="+server)
}
