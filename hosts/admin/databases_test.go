package admin_test

import (
	"maps"
	"testing"
)

// The log says which operator has deleted a database without a backup, and why.
func TestADeletionWithoutABackupIsAudited(t *testing.T) {
	t.Setenv("SUDO_USER", "grace")
	c := newConsole(t)
	ada := c.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=free")
	c.shared(text(t, ada, "accountId"), text(t, ada, "userId"))
	remove := []string{"operation", "delete-unverified", "--database=" + shop, "--yes"}
	c.refuses(`"reason" not set`, remove...)
	c.refuses("VALIDATION_ERROR", append(remove, "--reason= ")...)
	asked := c.does(append(remove, "--reason=the customer asked for it")...)
	log := c.lists("audit", "list", "--database="+shop)
	want := map[string]any{
		"operator": "grace", "reason": "the customer asked for it", "backup": "none", "operationId": text(t, asked, "operationId"),
		"name": "shop",
	}
	if len(log) != 1 || log[0]["action"] != "database.delete_requested" || log[0]["actor"] != "operator" ||
		!maps.Equal(log[0]["details"].(map[string]any), want) {
		t.Errorf("the log is %v", log)
	}
	c.refuses("DATABASE_STATE_CONFLICT", append(remove, "--reason=again")...)
}
