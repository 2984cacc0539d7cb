package overlay

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/database"
)

// Role is a role of a database, with its function there.
type Role struct{ Name, As string }

// Groups are the group roles of a database: they hold the rights that logins inherit.
func Groups(n database.Names) []Role {
	return []Role{{n.ReadGroup, "read_group"}, {n.WriteGroup, "write_group"}}
}

// Harmless is what no role of the platform may, as it is written when one is made.
const Harmless = " NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS"

// Mark writes the oids of the roles that this transaction made.
func Mark(of string, parts ...Role) string {
	var rows []string
	for _, r := range parts {
		rows = append(rows, "("+pg.Quote(r.Name)+","+pg.Quote(r.As)+")")
	}
	return fmt.Sprintf("INSERT INTO ledger.role (name, oid, database_id, part) SELECT r.rolname, r.oid, %s, made.part"+
		" FROM pg_roles r JOIN (VALUES %s) made (name, part) ON r.rolname = made.name::name", pg.Quote(of),
		strings.Join(rows, ","))
}

// Join gives a role the rights of a group, but not its place.
func Join(group, name string) string {
	return "GRANT " + pg.Ident(group) + " TO " + pg.Ident(name) + " WITH INHERIT TRUE, SET FALSE"
}
