package admin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
)

// The page names every field that the lists print as JSON, and says what the plans are.
func TestThePageOfAccountsIsTrue(t *testing.T) {
	w, page := newTown(t), string(check.Must(os.ReadFile("../../docs/operate/accounts.md"))(t))
	for _, p := range account.Plans {
		q, api := account.Account{Plan: p}.Quotas(), map[bool]string{true: "yes", false: "no"}[p.AllowsAPI()]
		row := fmt.Sprintf("| %s | %s | %d | %d | %d | %d GiB | %d GiB |\n", p, api, q.Databases, q.ConnectionCap, q.BackupDays,
			q.DatabaseBytes>>30, q.BackupBytes>>30)
		if !strings.Contains(page, row) {
			t.Errorf("the page has no %s", row)
		}
	}
	row := func(command string) string {
		_, after, _ := strings.Cut(page, "\n| `"+command+"` |")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	named := func(command, text string, answer map[string]any) {
		for name := range answer {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s: the page does not name %s", command, name)
			}
		}
	}
	for _, command := range []string{
		"account list", "database list", "backup list", "feature list", "enroll list", "ci-namespace list",
		"operator list",
	} {
		named(command, row(command), w.lists(strings.Fields(command)...)[0])
	}
	w.billed(w.adaID, w.bobID)
	named("usage", row("usage"), w.lists("usage", "--month=2026-11")[0])
	named("maintenance status", row("maintenance status"), w.does("maintenance", "status"))
	w.enters(text(t, w.lists("account", "list")[0], "userId"))
	named("user sessions", row("user sessions"), w.lists("user", "sessions", "--email="+w.ada)[0])
	shown := w.does("account", "show", "--account=Ada")
	named("account show", row("account list")+row("account show"), shown)
	named("account show", row("account show"), shown["databaseList"].([]any)[0].(map[string]any))
	shown = w.does("database", "show", "--database="+old)
	named("database show", row("database list")+row("database show"), shown)
	named("database show", row("database show"), shown["deletion"].(map[string]any))
	named("database show", row("backup list"), shown["lastBackup"].(map[string]any))
}
