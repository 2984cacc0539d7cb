package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/ports"
)

// What destroys says what it is about. At a terminal it wants the name, elsewhere --yes; without that nothing is done.
func TestWhatDestroysIsConfirmed(t *testing.T) {
	c := newConsole(t)
	ada := c.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=free")
	c.shared(text(t, ada, "accountId"), text(t, ada, "userId"))
	asks := func(terminal bool, typed string, args ...string) (said string, err error) {
		var out, told bytes.Buffer
		cmd := admin.CommandAt(func(io.Reader) bool { return terminal })
		cmd.SetArgs(append(args, "--json", "--metadata-url="+c.url, "--keyring-file="+c.keyring))
		cmd.SetIn(strings.NewReader(typed))
		cmd.SetOut(&out)
		cmd.SetErr(&told)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err = cmd.ExecuteContext(t.Context())
		if (err == nil) != strings.HasPrefix(out.String(), "{") {
			t.Errorf("%v, and the answer is %q", err, out.String())
		}
		return told.String(), err
	}
	remove := []string{"operation", "delete-unverified", "--database=" + shop, "--reason=as they asked"}
	for what, c := range map[string]struct {
		terminal bool
		typed    string
	}{
		"without a terminal": {false, "shop\n"}, "nothing typed": {true, ""}, "an empty line": {true, "\n"},
		"another name": {true, "shop2\n"}, "yes": {true, "yes\n"},
	} {
		said, err := asks(c.terminal, c.typed, remove...)
		if !errors.Is(err, admin.ErrNotConfirmed) {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range []string{"shop", "ada@example.com", "db1", "size"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: it does not say %s:\n%s", what, want, said)
			}
		}
	}
	if log := c.lists("audit", "list", "--database="+shop); len(log) != 0 {
		t.Errorf("it was begun: %v", log)
	}
	if said, err := asks(true, "shop\n", remove...); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	op := text(t, c.lists("operation", "list")[0], "operationId")
	fail := []string{"operation", "fail", "--operation=" + op, "--reason=as they asked"}
	if said, err := asks(false, "", fail...); !errors.Is(err, admin.ErrNotConfirmed) || !strings.Contains(said, "ada@example.com") {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err := asks(false, "", append(fail, "--yes")...); errors.Is(err, admin.ErrNotConfirmed) || said != "" {
		t.Errorf("%v\n%s", err, said)
	}
}

// The commands that ask are those that destroy what a customer has or works on, or let it be destroyed, those that leave one way
// in that may be somebody else's by now, and the one that prints what all of a server can be read with. What takes a right away
// asks nobody: a command gives it again, and it may be urgent.
func TestWhichCommandsAsk(t *testing.T) {
	var ask []string
	cmd := admin.Command()
	for _, name := range leaves(cmd) {
		if one, _, err := cmd.Find(strings.Fields(name)); err != nil || one.Flags().Lookup("yes") != nil {
			ask = append(ask, name)
		}
	}
	want := []string{
		"backup forget", "database confirm-upgrade", "database drop-role", "database drop-unknown", "database finish-deletion",
		"database restore", "database rotate-owner", "metadata confirm", "operation delete-unverified", "operation fail",
		"server archive-key", "server recover", "user reset-factors", "user unlink-sign-on",
	}
	if slices.Sort(ask); !slices.Equal(ask, want) {
		t.Errorf("these ask: %v", ask)
	}
}

// An operator brings back what was deleted without a backup.
func TestAnOperatorBringsADatabaseBack(t *testing.T) {
	c := newConsole(t)
	ada := c.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=free")
	c.shared(text(t, ada, "accountId"), text(t, ada, "userId"))
	back := []string{"database", "recover", "--database=shop"}
	c.refuses(`"reason" not set`, back...)
	c.refuses("VALIDATION_ERROR", append(back, "--reason= ")...)
	c.refuses("DATABASE_STATE_CONFLICT", append(back, "--reason=it was the wrong one")...)
	c.buried()
	asked := c.does(append(back, "--reason=it was the wrong one")...)
	if asked["type"] != "recover" || asked["status"] != "queued" {
		t.Errorf("%v", asked)
	}
	log := c.lists("audit", "list", "--database="+shop)[0]
	details, _ := log["details"].(map[string]any)
	if log["action"] != "database.recover_requested" || details["reason"] != "it was the wrong one" || details["operator"] == "" {
		t.Errorf("%v", log)
	}
	if again := c.does(append(back, "--reason=again")...); again["operationId"] != asked["operationId"] {
		t.Errorf("%v, and then %v", asked, again)
	}
}

// buried has the database be deleted without a backup.
func (c console) buried() {
	c.t.Helper()
	store := check.Must(postgres.Open(c.t.Context(), postgres.Config{URL: c.url}))(c.t)
	defer func() { check.NoError(c.t, store.Close()) }()
	check.NoError(c.t, store.Update(c.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, shop)
		if err != nil {
			return err
		}
		r.Status = database.Deleted
		if err := tx.Databases().Save(ctx, r); err != nil {
			return err
		}
		_, err = tx.Deletions().Add(ctx, deletion.Tombstone{
			DatabaseID: shop, OperationID: "00000000-0000-4000-8000-000000000009", StatusBefore: database.Active,
			DeletedAt: r.CreatedAt, PurgeAfter: r.CreatedAt.Add(time.Hour),
		})
		return err
	}))
}
