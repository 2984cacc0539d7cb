package databases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// plan is the desired state of a database.
type plan struct {
	id, operation string
	model         database.RoleModel
	names         database.Names
	account       string            // whose it is; empty where nobody knows
	temporary     string            // name of the database while it is made; marks it with its operation
	limit         int               // CONNECTION LIMIT; the pooler uses the cap alone
	cap           int               // 0: none
	open          bool              // customers may log in once it has its name
	verifiers     map[string]string // by username
	password      string            // of the owner
	key           []byte            // of the backups
}

func planOf(e protocol.Command, c command.EnsureDatabase) plan {
	p := plan{
		id: string(c.DatabaseID), account: string(c.AccountID), operation: e.OperationID, model: c.RoleModel, names: c.Names(),
		temporary: temporaryName(e.OperationID), limit: -1, cap: c.ConnectionCap, open: !c.Closed, verifiers: map[string]string{},
		key: c.BackupKey,
	}
	if p.cap > 0 {
		p.limit = p.cap + database.SpareConnections
	}
	for _, l := range c.Logins {
		p.verifiers[l.Username] = l.Verifier
		if l.Login == database.OwnerLogin {
			p.password = l.Password
		}
	}
	return p
}

func temporaryName(operation string) string { return "tmp_" + id.Compact(id.OperationID(operation)) }

// logins are the roles that customers log in as.
func (p plan) logins() []overlay.Role {
	parts := make([]overlay.Role, 0, len(p.model.Logins()))
	for _, l := range p.model.Logins() {
		parts = append(parts, overlay.Role{Name: p.names.Of(l), As: string(l)})
	}
	return parts
}

// holder owns the database.
func (p plan) holder() overlay.Role { return overlay.Role{Name: p.names.Holder, As: "holder"} }

// groups hold the rights that logins inherit.
func (p plan) groups() []overlay.Role {
	if p.model == database.SingleLogin {
		return nil
	}
	return overlay.Groups(p.names)
}

// beginStatements record that the database is being created, with closed gates, and create the one role that it cannot be
// created without. A former database of the name may have been shut: this one is not.
func (p plan) beginStatements() []string {
	return []string{
		ledger.FlushLater,
		fmt.Sprintf("INSERT INTO ledger.database (id, account_id, name, role_model, connection_cap, made_by, open, backup_key) "+
			"VALUES (%s,%s,%s,%s,%d,%s,%t,'\\x%x')",
			pg.Quote(p.id), pg.Quote(p.account), pg.Quote(p.names.Owner), pg.Quote(string(p.model)), p.cap, pg.Quote(p.operation), p.open,
			p.key),
		"CREATE ROLE " + pg.Ident(p.names.Holder) + " NOLOGIN" + overlay.Harmless,
		overlay.Mark(p.id, p.holder()),
		p.gateStatement(),
		"DELETE FROM pooler.shut WHERE database = " + pg.Quote(p.names.Owner),
	}
}

// loginStatements make the other roles and their rows.
func (p plan) loginStatements() []string {
	s, word := []string{ledger.FlushLater}, " LOGIN"
	if !p.open {
		word = " NOLOGIN"
	}
	for _, r := range p.groups() {
		s = append(s, "CREATE ROLE "+pg.Ident(r.Name)+" NOLOGIN"+overlay.Harmless)
	}
	for _, r := range p.logins() {
		s = append(s, "CREATE ROLE "+pg.Ident(r.Name)+word+overlay.Harmless+" PASSWORD "+pg.Quote(p.verifiers[r.Name]))
	}
	s = append(s, overlay.Mark(p.id, slices.Concat(p.groups(), p.logins())...))
	if p.model == database.Managed {
		s = append(s,
			overlay.Join(p.names.WriteGroup, p.names.Runtime), overlay.Join(p.names.ReadGroup, p.names.Readonly))
	}
	return s
}

// GateStatement writes closed gates.
func (p plan) gateStatement() string {
	var rows []string
	for _, r := range p.logins() {
		rows = append(rows, "("+pg.Quote(r.Name)+","+pg.Quote(p.names.Owner)+",false)")
	}
	return "INSERT INTO pooler.gate (login, database, open) VALUES " + strings.Join(rows, ",")
}

// rightsStatements run inside the database while it has its temporary name. They may run again.
func (p plan) rightsStatements() []string {
	db, owner := pg.Ident(p.temporary), pg.Ident(p.names.Owner)
	s := []string{
		ledger.FlushLater,
		"REVOKE CONNECT, TEMPORARY ON DATABASE " + db + " FROM PUBLIC",
		"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE " + db + " TO " + owner + " WITH GRANT OPTION",
		"ALTER SCHEMA public OWNER TO " + owner,
	}
	if p.model == database.SingleLogin {
		return s
	}
	s = append(s, "GRANT USAGE ON SCHEMA public TO "+pg.Ident(p.names.ReadGroup)+","+pg.Ident(p.names.WriteGroup))
	return append(s, overlay.Later(p.names)...)
}

// renameStatements give the database its name, record it, and let its logins in unless it stays closed. CONNECT is granted to the
// other logins as the owner: only then can the owner revoke it later.
func (p plan) renameStatements() []string {
	db, name := pg.Ident(p.temporary), p.names.Owner
	var s []string
	if p.model == database.Managed {
		s = append(s, "SET LOCAL ROLE "+pg.Ident(p.names.Owner),
			"GRANT CONNECT ON DATABASE "+db+" TO "+pg.Ident(p.names.Runtime)+","+pg.Ident(p.names.Readonly), "RESET ROLE")
	}
	s = append(s,
		fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", db, p.limit),
		"ALTER DATABASE "+db+" RENAME TO "+pg.Ident(name),
		fmt.Sprintf("UPDATE ledger.database SET oid = (SELECT oid FROM pg_database WHERE datname = %s) WHERE id = %s",
			pg.Quote(name), pg.Quote(p.id)))
	if p.open {
		s = append(s, "UPDATE pooler.gate SET open = true WHERE database = "+pg.Quote(name))
	}
	return s
}
