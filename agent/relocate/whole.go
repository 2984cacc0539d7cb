package relocate

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// What belongs to a database as a whole is in no dump: what its roles may do with it, and what they have stored for themselves in
// it. A database that moves brings it along.

// brought are the statements that give a database that moves here what its roles had where it comes from, as far as they are
// roles here. ReasonInvalid: the copy was not made for a move.
func (x *Relocator) brought(ctx context.Context, d ledger.Database, was *backup.Whole) (statements []string, err error) {
	if was == nil {
		return nil, command.Refuse(command.ReasonInvalid, "the copy was not made for a move")
	}
	const known = "SELECT name FROM ledger.role WHERE database_id = $1 ORDER BY name"
	const additional = "SELECT name FROM ledger.role WHERE database_id = $1 AND part = 'additional' ORDER BY name"
	roles, err := pg.Column(ctx, x.db, known, d.ID)
	if err != nil {
		return nil, err
	}
	guests, err := pg.Column(ctx, x.db, additional, d.ID)
	if err != nil {
		return nil, err
	}
	p := switchPlan{Database: d, of: copyRow{name: d.Name}, whole: whole{grants: broughtGrants(was.Grants, roles)}}
	statements = revokeConnect(d, guests, p.whole.grants)
	if len(p.whole.grants) > 0 {
		statements = append(statements, p.grantStatements()...)
	}
	for _, s := range was.Settings {
		if !slices.Contains(roles, s.Login) || s.Name == "" {
			continue
		}
		ours, err := stored.Storable(ctx, x.db, s.Name)
		if err != nil {
			return nil, err
		}
		if ours { // the notes of the load name the others
			statements = append(statements, databaseSetting{s.Login, s.Name, s.Value}.statement(d.Name))
		}
	}
	return statements, nil
}

// broughtGrants are those on the database that roles of its own have made to each other, or to everybody.
func broughtGrants(was []backup.Grant, roles []string) (list []databaseGrant) {
	for _, g := range was {
		public := g.Grantee == "PUBLIC"
		if !slices.Contains(roles, g.Grantor) || !public && !slices.Contains(roles, g.Grantee) {
			continue
		}
		for _, privilege := range g.Privileges {
			one := databaseGrant{grantor: g.Grantor, grantee: g.Grantee, privilege: privilege}
			one.option = slices.Contains(g.WithOption, privilege)
			if public {
				one.grantee = ""
			}
			list = append(list, one)
		}
	}
	return list
}

// revokeConnect takes back in the owner's name what a role gets that is prepared, where the owner had taken it back.
func revokeConnect(d ledger.Database, guests []string, grants []databaseGrant) (statements []string) {
	for _, guest := range guests {
		if !slices.ContainsFunc(grants, func(g databaseGrant) bool { return g.grantee == guest && g.privilege == "CONNECT" }) {
			statements = append(statements, "REVOKE CONNECT ON DATABASE "+pg.Ident(d.Name)+" FROM "+pg.Ident(guest))
		}
	}
	if len(statements) > 0 {
		statements = append(append([]string{"SET LOCAL ROLE " + pg.Ident(d.Names().Owner)}, statements...), "RESET ROLE")
	}
	return statements
}
