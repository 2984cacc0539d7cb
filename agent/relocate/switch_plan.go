package relocate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// whole is what belongs to a database as a whole. A dump has nothing of it, and a restore leaves it as it is now.
type whole struct {
	grants   []databaseGrant
	limit    int
	comment  string // empty: none
	settings []databaseSetting
	roles    []int64 // whose settings these are; 0: everybody's
}

// databaseGrant is one privilege.
type databaseGrant struct {
	grantor, grantee string // a role; no grantee: everybody
	privilege        string
	option           bool
}

// databaseSetting is what is set in the database, for everybody or for one role.
type databaseSetting struct{ role, name, value string }

// wholeOf reads it. Of roles' own settings, which anybody can store for themselves in whatever database, those of the database's
// own roles count. ReasonFailed: it is more than a switch can repeat while customers are shut out.
func (x *Relocator) wholeOf(ctx context.Context, d ledger.Database) (w whole, err error) {
	const base = `SELECT p.datconnlimit, coalesce(shobj_description(p.oid, 'pg_database'), ''),
		ARRAY(SELECT 0 UNION SELECT r.oid::bigint FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid
			WHERE l.database_id = $2 ORDER BY 1)
		FROM pg_database p WHERE p.oid = $1`
	if err := x.db.QueryRowContext(ctx, base, d.OID, d.ID).Scan(&w.limit, &w.comment, (*pq.Int64Array)(&w.roles)); err != nil {
		return w, err
	}
	const grants = `SELECT pg_get_userbyid(a.grantor), CASE a.grantee WHEN 0 THEN '' ELSE pg_get_userbyid(a.grantee) END,
			a.privilege_type, a.is_grantable
		FROM pg_database p, aclexplode(coalesce(p.datacl, acldefault('d', p.datdba))) a WHERE p.oid = $1 ORDER BY 1, 2, 3 LIMIT $2`
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var g databaseGrant
		err := rows.Scan(&g.grantor, &g.grantee, &g.privilege, &g.option)
		w.grants = append(w.grants, g)
		return err
	}, grants, d.OID, mostGrants+1)
	if err != nil {
		return w, err
	}
	if len(w.grants) > mostGrants {
		return w, command.Refuse(command.ReasonFailed, "more than %d privileges are granted on the database, which is more than a"+
			" switch can repeat; revoke what is not needed, and restore again", mostGrants)
	}
	all, err := stored.Settings(ctx, x.db, d.OID, w.roles)
	for _, s := range all {
		if s.Excess() {
			return w, command.Refuse(command.ReasonFailed, "the login %[1]s has stored more than %[2]d settings, or %[3]d KiB of"+
				" them, for the database; connect as %[1]s, ALTER ROLE CURRENT_USER IN DATABASE %[4]s RESET ALL, and restore again",
				s.Role, stored.Most, stored.MostBytes>>10, pg.Ident(d.Name))
		}
		w.settings = append(w.settings, databaseSetting{s.Role, s.Name, s.Value})
	}
	return w, err
}

// mostGrants bounds the privileges on a database that a switch repeats, each by a statement.
const mostGrants = 1000

// switchPlan is the one place that says which statements put a copy in the place of a database. They are for one transaction: in
// it the database gets another name, and the copy gets its name and all that belongs to it as a whole.
type switchPlan struct {
	ledger.Database
	of    copyRow
	whole whole
}

func (p switchPlan) statements() []string {
	replaced, copied, holder := pg.Ident(p.of.replacedName()), pg.Ident(p.of.name), pg.Ident(p.holder())
	s := []string{
		fmt.Sprintf("SELECT ledger.take_place(%s, %d)", pg.Quote(p.of.name), p.OID),
		"ALTER DATABASE " + pg.Ident(p.Name) + " RENAME TO " + replaced,
		"ALTER DATABASE " + copied + " OWNER TO " + holder,
		"REVOKE ALL ON DATABASE " + copied + " FROM PUBLIC, " + holder,
	}
	s = append(s, p.grantStatements()...)
	s = append(s, fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", copied, p.whole.limit))
	if p.whole.comment != "" {
		s = append(s, "COMMENT ON DATABASE "+copied+" IS "+pg.Quote(p.whole.comment))
	}
	for _, one := range p.whole.settings {
		s = append(s, one.statement(p.of.name))
	}
	s = append(s,
		fmt.Sprintf("SELECT ledger.assert_like(%d, %d, '%s')", p.of.oid, p.OID, oids(p.whole.roles)),
		"ALTER DATABASE "+copied+" RENAME TO "+pg.Ident(p.Name),
		fmt.Sprintf("UPDATE ledger.database SET oid = %d WHERE id = %s", p.of.oid, pg.Quote(p.ID)),
		// Nobody enters it any more, and nothing of the platform's is kept by it from being dropped.
		"ALTER DATABASE "+replaced+" OWNER TO CURRENT_USER", "ALTER DATABASE "+replaced+" ALLOW_CONNECTIONS false",
	)
	s = append(s, beginsFilled(p.Database, p.of.operation)...)
	return append(s, p.of.brought...)
}

// beginsFilled has no moment be had back at which a database had no data yet, where the operation that fills it has made it: a
// database that comes from another server had them there.
func beginsFilled(d ledger.Database, operation string) []string {
	if d.MadeBy != operation {
		return nil
	}
	of := " WHERE database_id = " + pg.Quote(d.ID)
	return []string{
		"DELETE FROM ledger.incarnation" + of + " AND until IS NOT NULL",
		"UPDATE ledger.incarnation SET since = clock_timestamp()" + of,
	}
}

func (p switchPlan) holder() string { return database.RoleNames(id.DatabaseID(p.ID), p.Name).Holder }

// grantStatements grant each privilege as its grantor. Those that rest on nothing are left out: the comparison says so.
func (p switchPlan) grantStatements() (s []string) {
	ordered, _ := pg.InOrder(p.whole.grants, func(g databaseGrant) pg.Grant {
		of := pg.Grant{Grantor: g.grantor, Grantee: g.grantee, Privileges: []string{g.privilege}, Option: g.option}
		if of.Grantor == p.holder() {
			of.Grantor = ""
		}
		return of
	})
	for _, g := range ordered {
		s = append(s, "SET LOCAL ROLE "+pg.Ident(g.grantor), g.statement(p.of.name))
	}
	return append(s, "RESET ROLE")
}

func (g databaseGrant) statement(on string) string {
	to, option := "PUBLIC", ""
	if g.grantee != "" {
		to = pg.Ident(g.grantee)
	}
	if g.option {
		option = " WITH GRANT OPTION"
	}
	return "GRANT " + g.privilege + " ON DATABASE " + pg.Ident(on) + " TO " + to + option
}

func (s databaseSetting) statement(in string) string {
	of := "ALTER DATABASE " + pg.Ident(in)
	if s.role != "" {
		of = "ALTER ROLE " + pg.Ident(s.role) + " IN DATABASE " + pg.Ident(in)
	}
	var name []string
	for part := range strings.SplitSeq(s.name, ".") {
		name = append(name, pg.Ident(part))
	}
	return of + " SET " + strings.Join(name, ".") + " TO " + s.sql()
}

// quotedLists are the parameters of PostgreSQL 16 that are stored as lists of quoted names.
var quotedLists = []string{
	"local_preload_libraries", "search_path", "session_preload_libraries", "shared_preload_libraries", "temp_tablespaces",
	"unix_socket_directories",
}

// sql is the value as it is written in a statement, such that it is stored as it is.
func (s databaseSetting) sql() string {
	if !slices.Contains(quotedLists, strings.ToLower(s.name)) {
		return pg.Quote(s.value)
	}
	var list []string
	for _, name := range splitNames(s.value) {
		list = append(list, pg.Quote(name))
	}
	if len(list) == 0 {
		return "''"
	}
	return strings.Join(list, ", ")
}

// splitNames reads a list of names as PostgreSQL stores it: those that need it are quoted.
func splitNames(value string) (names []string) {
	for value = strings.TrimSpace(value); value != ""; {
		var name string
		if rest, quoted := strings.CutPrefix(value, `"`); quoted {
			end := 0
			for end < len(rest) && (rest[end] != '"' || strings.HasPrefix(rest[end:], `""`)) {
				if rest[end] == '"' {
					end++
				}
				end++
			}
			name, value = strings.ReplaceAll(rest[:min(end, len(rest))], `""`, `"`), rest[min(end+1, len(rest)):]
			_, value, _ = strings.Cut(value, ",")
		} else {
			name, value, _ = strings.Cut(value, ",")
			name = strings.TrimSpace(name)
		}
		names = append(names, name)
		value = strings.TrimSpace(value)
	}
	return names
}

func oids(list []int64) string {
	text := make([]string, len(list))
	for i, oid := range list {
		text[i] = fmt.Sprint(oid)
	}
	return "{" + strings.Join(text, ",") + "}"
}
