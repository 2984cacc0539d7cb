package logins

import (
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// loginPlan turns the actions on a login into statements of one transaction.
type loginPlan struct {
	loginRow
	desired  role.Login
	verifier string
	group    string
}

// backstop is PostgreSQL's own limit of a login: a little above the pooler's, so that clients queue there and do not fail here.
func backstop(connectionLimit int) int { return connectionLimit + database.SpareConnections }

// serverLimit is PostgreSQL's own limit of the login, -1 where it has none. One that an administrator has lowered would keep the
// proof of a rotation waiting for ever.
func (l loginRow) serverLimit() int {
	if l.limit == 0 {
		return -1
	}
	return backstop(l.limit)
}

// statements lead from what was observed to what is desired.
func (p loginPlan) statements(observed role.Login) []string {
	var all []string
	for _, a := range role.Plan(p.desired, observed) {
		all = append(all, p.statement(a)...)
	}
	return all
}

func (p loginPlan) statement(a role.Action) []string {
	alter := "ALTER ROLE " + pg.Ident(p.name) + " "
	switch a {
	case role.CreateRole:
		return p.createStatements()
	case role.ForbidLogin:
		return []string{alter + "NOLOGIN"}
	case role.ClearPassword:
		return []string{alter + "PASSWORD NULL"}
	case role.SetLimit:
		return []string{fmt.Sprintf("%sCONNECTION LIMIT %d", alter, p.desired.Limit)}
	case role.JoinGroup:
		return []string{overlay.Join(p.group, p.name), p.rowStatement("member_of = " + pg.Quote(p.group))}
	case role.SetPassword:
		return []string{alter + "PASSWORD " + pg.Quote(p.verifier) + " VALID UNTIL " + pg.Quote(validity(p.desired.ValidUntil))}
	case role.AllowLogin:
		return []string{alter + "LOGIN"}
	case role.RemoveRole:
		return p.ending().Drop()
	}
	return nil
}

// createStatements make the role without log-in, its mark, and a closed gate. A row that an earlier role of the name has left,
// one that an administrator dropped, goes. The owner itself grants CONNECT, here or later: only then can it take that back.
func (p loginPlan) createStatements() []string {
	s := append(p.forgetStatements(),
		"CREATE ROLE "+pg.Ident(p.name)+" NOLOGIN"+overlay.Harmless,
		fmt.Sprintf("INSERT INTO ledger.role (name, oid, database_id, part, enabled) SELECT rolname, oid, %s, 'additional', false"+
			" FROM pg_roles WHERE rolname = %s", pg.Quote(p.db.ID), pg.Quote(p.name)),
		fmt.Sprintf("INSERT INTO pooler.gate (login, database, open) VALUES (%s, %s, false)", pg.Quote(p.name), pg.Quote(p.db.Name)),
	)
	if p.model().OwnerConnects {
		return s
	}
	return append(s,
		"SET LOCAL ROLE "+pg.Ident(p.names().Owner),
		"GRANT CONNECT ON DATABASE "+pg.Ident(p.db.Name)+" TO "+pg.Ident(p.name),
		"RESET ROLE",
	)
}

// ending is how the role ends. It takes the platform's grants back, each as its grantor.
func (p loginPlan) ending() retire.Ending {
	n := p.names()
	return retire.Ending{Roles: []string{p.name}, Forget: p.forgetStatements(), TakeBack: []string{
		"SET LOCAL ROLE " + pg.Ident(n.Owner),
		"REVOKE CONNECT ON DATABASE " + pg.Ident(p.db.Name) + " FROM " + pg.Ident(p.name),
		"RESET ROLE",
		"REVOKE " + pg.Ident(n.ReadGroup) + "," + pg.Ident(n.WriteGroup) + " FROM " + pg.Ident(p.name),
		"REVOKE " + pg.Ident(p.name) + " FROM " + pg.Ident(n.Owner),
	}}
}

// cedeStatement lets the owner drop, revoke and reassign what a dead role has, which nobody else could: a role may make large
// objects and default privileges without being asked. The owner cannot act as the role, nor pass this on.
func (p loginPlan) cedeStatement() string {
	return "GRANT " + pg.Ident(p.name) + " TO " + pg.Ident(p.names().Owner) + " WITH INHERIT TRUE, SET FALSE, ADMIN FALSE"
}

// forgetStatements remove the login's rows.
func (p loginPlan) forgetStatements() []string {
	return []string{
		fmt.Sprintf("DELETE FROM pooler.gate WHERE login = %s AND database = %s", pg.Quote(p.name), pg.Quote(p.db.Name)),
		fmt.Sprintf("DELETE FROM ledger.role WHERE name = %s AND database_id = %s", pg.Quote(p.name), pg.Quote(p.db.ID)),
	}
}

func validity(t *time.Time) string {
	if t == nil {
		return "infinity"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// rowStatement changes the ledger's row of the login.
func (l loginRow) rowStatement(set string) string {
	return fmt.Sprintf("UPDATE ledger.role SET %s WHERE name = %s AND oid = %d", set, pg.Quote(l.name), l.oid)
}

func (l loginRow) gateStatement(open bool) string {
	return fmt.Sprintf("UPDATE pooler.gate SET open = %t WHERE login = %s AND database = %s", open,
		pg.Quote(l.name), pg.Quote(l.db.Name))
}
