package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/ports"
)

// town is an installation with something of everything, and with names as long as they may be.
type town struct {
	console
	adaID, bobID        string
	ada, bob            string // email addresses
	name, longName      string // of a database of Ada's, and of one of Bob's
	server, otherServer string
	label, namespace    string
	hostile             string
}

const (
	blog = "00000000-0000-4000-8000-000000000005"
	old  = "00000000-0000-4000-8000-000000000006"
)

func newTown(t *testing.T) town {
	t.Helper()
	w := town{
		console: newConsole(t), ada: "ada@example.com", bob: strings.Repeat("b", 60) + "@" + strings.Repeat("d", 60) + ".example.com",
		name: "shop", longName: "n" + strings.Repeat("o", 49), server: "db1", otherServer: strings.Repeat("s", 63),
		label: strings.Repeat("l", 64), namespace: strings.Repeat("c", 63), hostile: "\x1b[2J\u202e" + strings.Repeat("x", 40),
	}
	w.adaID = text(t, w.does("account", "create", "--email="+w.ada, "--name=Ada", "--plan=pro"), "accountId")
	bob := w.does("account", "create", "--email="+w.bob, "--name="+strings.Repeat("B", 100), "--plan=business")
	w.bobID = text(t, bob, "accountId")
	w.does("key", "create", "--account="+w.ada, "--label="+w.label)
	w.does("ci-namespace", "create", "--account="+w.ada, "--name="+w.namespace)
	w.does("ci-key", "create", "--namespace="+w.namespace)
	w.does("ci-trust", "add", "--namespace="+w.namespace, "--issuer=https://token.example.com/"+strings.Repeat("i", 80),
		"--audience=pgherd", "--subject=repo:acme/"+strings.Repeat("r", 100)+":**")
	w.does("certificate-key", "create")
	w.does("operator", "add", "--email="+w.bob)
	w.store()
	w.does("enroll", "--database="+shop, "--route=all")
	w.does("feature", "enable", "clone")
	return w
}

// store puts in what no command makes, or only with an agent: servers, and databases with backups, work and a log.
func (w town) store() {
	w.t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	store := check.Must(postgres.Open(w.t.Context(), postgres.Config{URL: w.url}))(w.t)
	defer func() { check.NoError(w.t, store.Close()) }()
	check.NoError(w.t, store.Update(w.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		servers := []id.ServerID{"00000000-0000-4000-8006-000000000001", "00000000-0000-4000-8006-000000000002"}
		for i, name := range []string{w.server, w.otherServer} {
			if err := tx.Servers().Add(ctx, server.Server{
				ID: servers[i], Name: name, AgentURL: "https://" + strings.Repeat("a", 60) + ".internal:8090", SealedSecret: []byte("sealed"),
				SealedArchiveKey: []byte("sealed"),
				PublicHost:       strings.Repeat("h", 60) + ".example.com", PublicPort: 6432, Capacity: 100, Enabled: true, CreatedAt: now,
			}); err != nil {
				return err
			}
		}
		for i, r := range []database.Record{
			{ID: shop, AccountID: id.AccountID(w.adaID), ServerID: servers[0], Name: w.name, Status: database.Active},
			{ID: blog, AccountID: id.AccountID(w.bobID), ServerID: servers[1], Name: w.longName, Status: database.Stopped},
			{ID: old, AccountID: id.AccountID(w.bobID), ServerID: servers[1], Name: w.name, Status: database.Deleted},
		} {
			r.DisplayName, r.RoleModel, r.Schedule, r.Settings = w.hostile, database.Managed, database.Daily, database.NoSettings()
			if r.OverlayStatus, r.PostgresVersion = database.NoOverlay, pgversion.Default; r.ID == blog {
				r.RoleModel = database.SingleLogin
			}
			r.CreatedAt, r.SizeBytes = now.Add(time.Duration(i)*time.Second), 1288490189
			if err := tx.Databases().Add(ctx, r); err != nil {
				return err
			}
			if err := w.storeWork(ctx, tx, r, now); err != nil {
				return err
			}
			if r.ID != blog {
				continue
			}
			if err := tx.Forwards().Put(ctx, move.Forward{
				DatabaseID: r.ID, ServerID: servers[0], CreatedAt: now, Until: now, NextAt: now, Failures: 9,
				Trouble: strings.Repeat("no ", 60),
			}); err != nil {
				return err
			}
		}
		for n, e := range []audit.Entry{
			{Action: "feature.disabled", Details: audit.Details{"feature": "restore"}}, {Action: "maintenance.ended"},
		} {
			e.ID, e.At, e.Actor = id.AuditID(fmt.Sprintf("00000000-0000-4000-8005-00000000000%d", n)), now, audit.Operator
			if err := tx.Audit().Add(ctx, e); err != nil {
				return err
			}
		}
		d := drill.Drill{
			ID: "00000000-0000-4000-8007-000000000001", ServerID: servers[0], DatabaseID: shop, PointInTime: now, BegunAt: now,
			Facts: drill.NoFacts,
		}
		if err := tx.Drills().Add(ctx, d); err != nil {
			return err
		}
		if err := tx.Drills().End(ctx, d.Ended(now, drill.Found{Outcome: drill.Failed, Why: w.hostile})); err != nil {
			return err
		}
		_, err := tx.Deletions().Add(ctx, deletion.Tombstone{
			DatabaseID: old, OperationID: "00000000-0000-4000-8000-000000000009", StatusBefore: database.Active, DeletedAt: now,
			PurgeAfter: now.Add(time.Hour),
		})
		return err
	}))
}

// storeWork puts in an operation, a change, two backups of which the older is verified, a login and an entry of the log.
func (w town) storeWork(ctx context.Context, tx ports.Tx, r database.Record, now time.Time) error {
	n := string(r.ID[35:])
	for i, verified := range []*time.Time{nil, &now} {
		at := now.Add(-time.Duration(i) * time.Hour)
		if err := tx.Backups().Add(ctx, backup.Backup{
			DatabaseID: r.ID, Filename: backup.FilenameAt(at), Trigger: backup.Scheduled, Format: backup.FormatSQLGzip,
			OperationID: id.OperationID(fmt.Sprintf("00000000-0000-4000-800%d-00000000000%s", i, n)), SizeBytes: 5 << 30,
			CreatedAt: at, VerifiedAt: verified,
		}); err != nil {
			return err
		}
	}
	if err := tx.Operations().Add(ctx, operation.Operation{
		ID: id.OperationID("00000000-0000-4000-8002-00000000000" + n), AccountID: r.AccountID, DatabaseID: r.ID, ServerID: r.ServerID,
		Kind: "backup", Status: operation.Running, Stage: "dumping", ErrorCode: "BACKUP_FAILED", ErrorText: w.hostile,
		Actor: audit.Operator, CreatedAt: now, Lease: operation.Lease{NotBefore: now.Add(time.Hour)},
	}); err != nil {
		return err
	}
	if err := tx.RoleChanges().Add(ctx, role.Change{
		ID: id.OperationID("00000000-0000-4000-8003-00000000000" + n), DatabaseID: r.ID, Login: database.OwnerLogin,
		Username: w.longName, Generation: 1, CredentialGeneration: 1, Kind: role.Revocation, Status: role.Pending, CreatedAt: now,
		Refusal: strings.Repeat("no ", 60),
	}); err != nil {
		return err
	}
	if err := tx.Logins().Add(ctx, ports.LoginSecret{
		DatabaseID: r.ID, Login: database.OwnerLogin, Username: r.Name, Generation: 1, Verifier: "SCRAM-SHA-256$hidden",
		Sealed: []byte("sealed"),
	}); err != nil {
		return err
	}
	return tx.Audit().Add(ctx, audit.Entry{
		ID: id.AuditID("00000000-0000-4000-8004-00000000000" + n), At: now, AccountID: r.AccountID, DatabaseID: r.ID,
		Actor: audit.Operator, Action: audit.DatabaseStopped, Details: audit.Details{"b": w.hostile, "a": "1"},
	})
}

// Every list fits a terminal of 80 columns, keeps what customers chose from moving its cursor, and has a test with rows here.
func TestListsFitTheTerminal(t *testing.T) {
	w := newTown(t)
	w.does("legacy-roles", "activate", "--database="+blog)
	lists := map[string][]string{
		"account list":         {},
		"audit list":           {"--database=" + shop},
		"backup list":          {},
		"certificate-key list": {},
		"change list":          {"--database=" + blog},
		"ci-key list":          {"--namespace=" + w.namespace},
		"ci-namespace list":    {},
		"ci-trust list":        {"--namespace=" + w.namespace},
		"database list":        {},
		"drill list":           {},
		"enroll list":          {},
		"extensions list":      {},
		"feature list":         {},
		"forward list":         {},
		"key list":             {"--account=" + w.ada},
		"legacy-roles list":    {},
		"member list":          {"--database=" + blog},
		"operation list":       {"--database=" + blog},
		"operator list":        {},
		"server list":          {},
	}
	for _, command := range leaves(admin.Command()) {
		args, known := lists[command]
		if !strings.HasSuffix(" "+command, " list") {
			continue
		}
		if delete(lists, command); !known {
			t.Errorf("%s is not looked at", command)
		}
		if len(w.lists(append(strings.Fields(command), args...)...)) == 0 {
			t.Errorf("%s has no rows", command)
		}
		out, err := w.run(append(strings.Fields(command), args...)...)
		if err != nil || strings.Contains(out, "map[") || strings.Contains(out, "nil") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > 80 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Errorf("%s prints %q", command, line)
			}
		}
	}
	for command := range lists {
		t.Errorf("there is no %s", command)
	}
}

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) (list []string) {
	for _, c := range cmd.Commands() {
		if len(c.Commands()) == 0 {
			list = append(list, strings.TrimPrefix(c.CommandPath(), "admin "))
		}
		list = append(list, leaves(c)...)
	}
	return list
}

func names(rows []map[string]any, field string) (list []string) {
	for _, r := range rows {
		list = append(list, fmt.Sprint(r[field]))
	}
	return list
}

func TestListsAreFiltered(t *testing.T) {
	w := newTown(t)
	for _, c := range []struct {
		field, command string
		want           []string
	}{
		{"email", "account list", []string{w.ada, w.bob}},
		{"email", "account list --plan=pro", []string{w.ada}},
		{"email", "account list --email=ADA@", []string{w.ada}},
		{"email", "account list --limit=1", []string{w.ada}},
		{"email", "account list --email=nobody", nil},
		{"databaseId", "database list", []string{shop, blog}},
		{"databaseId", "database list --deleted", []string{old}},
		{"databaseId", "database list --status=stopped,deleted", []string{blog, old}},
		{"databaseId", "database list --account=" + w.ada, []string{shop}},
		{"databaseId", "database list --server=" + w.otherServer, []string{blog}},
		{"databaseId", "backup list --database=" + w.longName, []string{blog, blog}},
		{"databaseId", "backup list --unverified --account=" + w.ada, []string{shop}},
		{"databaseId", "backup list --limit=4 --account=" + w.bobID, []string{old, blog, old, blog}},
		{"databaseId", "enroll list", []string{shop}},
		{"databaseId", "enroll list --account=" + w.bobID, nil},
		{"name", "ci-namespace list --account=" + w.ada, []string{w.namespace}},
		{"name", "ci-namespace list --account=" + w.bobID, nil},
	} {
		if got := names(w.lists(strings.Fields(c.command)...), c.field); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	for _, f := range w.lists("feature", "list") {
		on := f["feature"] == "clone"
		if f["enabled"] != on || on && fmt.Sprint(f["enrolled"]) != "map[clone:1]" {
			t.Errorf("listed is %v", f)
		}
		if f["feature"] == "restore" && f["changedAt"] == nil {
			t.Errorf("the log is not read: %v", f)
		}
	}
	w.refuses("plan: must be", "account", "list", "--plan=gold")
	w.refuses("status: must be creating", "database", "list", "--status=broken")
	w.refuses("if any flags in the group [status deleted] are set", "database", "list", "--status=active", "--deleted")
	w.refuses("route: must be one of", "enroll", "list", "--route=everything")
	w.refuses("route: must be one of", "enroll", "--database="+blog, "--route=everything")
	if out, err := w.run("enroll", "list", "--account="+w.bobID); err != nil || out != "none\n" {
		t.Errorf("an empty list: %v, %q", err, out)
	}
}

func TestOneThingIsShownWhole(t *testing.T) {
	w := newTown(t)
	w.does("account", "set", "--account=Ada", "--max-databases=3", "--database-bytes=2GiB")
	a := w.does("account", "show", "--account="+strings.ToUpper(w.ada))
	used, _ := a["databases"].(map[string]any)
	if used["used"] != 1.0 || used["quota"] != 3.0 || a["keys"] != 1.0 || a["bytes"] != 1288490189.0 ||
		a["backupBytes"] != 10.0*(1<<30) || fmt.Sprint(a["overrides"]) != "map[databaseBytes:2.147483648e+09 maxDatabases:3]" {
		t.Errorf("got %v", a)
	}
	out, err := w.run("account", "show", "--account=Ada")
	for _, want := range []string{
		"\ndatabases:      1 of 3\n", "\nbytes:          1.2 GiB\n", "\n  maxDatabases:   3\n", "\n  backupDays:          14\n",
		"  1.2 GiB of 2 GiB\n    10 GiB of 100 GiB\n", w.label[:36],
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v, no %q in\n%s", err, want, out)
		}
	}

	d := w.does("database", "show", "--database="+shop)
	open, _ := d["openOperation"].(map[string]any)
	last, _ := d["lastBackup"].(map[string]any)
	verified, _ := d["lastVerifiedBackup"].(map[string]any)
	if open["stage"] != "dumping" || last["verifiedAt"] != nil || verified["verifiedAt"] == nil || d["deletion"] != nil ||
		d["email"] != w.ada || d["server"] != w.server || fmt.Sprint(d["logins"]) != "[shop]" {
		t.Errorf("got %v", d)
	}
	gone := w.does("database", "show", "--database="+old)
	if grave, _ := gone["deletion"].(map[string]any); grave["recoveryStatus"] != "unavailable" || grave["purgeAfter"] == nil {
		t.Errorf("got %v", gone)
	}
	out, err = w.run("database", "show", "--database="+old)
	if err != nil || !strings.Contains(out, `\x1b[2J\u202exxx`) || !strings.Contains(out, "  recoveryStatus:") ||
		!strings.Contains(out, "(in 1h)") || strings.Contains(out, "hidden") || strings.Contains(out, "sealed") {
		t.Errorf("%v\n%q", err, out)
	}
	if got := w.does("maintenance", "status"); got["maintenance"] != "off" || got["changedAt"] == nil {
		t.Errorf("got %v", got)
	}
	w.does("maintenance", "on")
	if got := w.does("maintenance", "status"); got["maintenance"] != "on" {
		t.Errorf("got %v", got)
	}
}

// A name is taken wherever an ID is; one that several things have is refused with their IDs, and what is an ID is no name.
func TestThingsAreFoundByName(t *testing.T) {
	w := newTown(t)
	w.refuses(`database: several are called "shop"; give the ID: `+shop+" (active on server db1), "+old+" (deleted on server sss",
		"member", "list", "--database=shop")
	w.refuses(`database: no database is called "sho"; pgherd admin database list shows them`, "database", "show", "--database=sho")
	w.refuses("account: no account is called", "account", "show", "--account=da@example.com")
	w.refuses("server: no server is called", "server", "disable", "--server=db")
	w.refuses("key: must be the ID or the prefix of a key", "key", "revoke", "--key=pgh_0000")
	w.does("user", "create", "--email=eve@example.com", "--name="+w.adaID)
	w.does("user", "create", "--email=mal@example.com", "--name="+w.ada)
	for _, who := range []string{w.ada, w.adaID, strings.ToUpper(w.adaID)} {
		if got := w.does("account", "show", "--account="+who); got["email"] != w.ada {
			t.Errorf("%s is %v", who, got["email"])
		}
	}
	w.does("server", "disable", "--server=db1")
	if got := w.does("unenroll", "--database="+w.longName, "--route=clone"); fmt.Sprint(got["databaseId"], got["database"]) !=
		blog+w.longName {
		t.Errorf("got %v", got)
	}
	prefix := text(t, w.does("key", "create", "--account=Ada", "--label=x", "--scope=selected", "--database="+shop), "prefix")
	if got := w.does("key", "revoke", "--key="+prefix); got["keyId"] != strings.TrimPrefix(prefix, "pgh_") {
		t.Errorf("got %v", got)
	}
	w.does("ci-namespace", "create", "--account="+w.bob, "--name="+w.namespace)
	w.refuses("namespace: several are called", "ci-key", "create", "--namespace="+w.namespace)
	nothing := "00000000-0000-4000-8000-00000000000f"
	for _, list := range []string{"change", "audit", "operation"} {
		w.refuses("database: does not exist", list, "list", "--database="+nothing)
	}
	end := []string{"change", "end", "--database=" + blog}
	w.refuses("reason: must have 1-300 characters", append(end, "--change="+nothing, "--reason= ")...)
	w.refuses("OPERATION_NOT_FOUND", append(end, "--change="+nothing, "--reason=because")...)
	w.refuses("change: must be a lowercase UUID", append(end, "--change=X", "--reason=because")...)
}
