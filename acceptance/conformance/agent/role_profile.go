package agent

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/role"
)

// privileges are what an access profile may give, and what none gives.
var privileges = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "CREATE", "TEMPORARY"}

func roleReadOnly(t *testing.T, s Stand) { roleMay(t, s, role.ReadOnly, "SELECT") }
func roleCustom(t *testing.T, s Stand)   { roleMay(t, s, role.Custom) }
func roleReadWrite(t *testing.T, s Stand) {
	roleMay(t, s, role.ReadWrite, "SELECT", "INSERT", "UPDATE", "DELETE", "USAGE")
}

// roleMay checks what a profile lets do with a table that was there before the role, and with one made later.
func roleMay(t *testing.T, s Stand, profile role.AccessProfile, want ...string) {
	t.Helper()
	g := stageOf(t, s)
	g.role.AccessProfile = profile
	did(t, g.Server.Load(g.spec.Name, "CREATE TABLE early (n bigserial);\n"), "making a table")
	g.open(t)
	did(t, g.Server.Load(g.spec.Name, "CREATE TABLE late (n bigserial);\n"), "making a table")
	for _, table := range []string{"early", "late"} {
		for _, p := range privileges {
			if got := g.Server.May(g.login.Username, p, table); got != slices.Contains(want, p) {
				t.Errorf("a %s role: %s, table %s: %t", profile, p, table, got)
			}
		}
	}
}
