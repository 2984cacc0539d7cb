package sidecar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

// largeObject plans owner and privileges of one.
func (p *planner) largeObject(oid string, o backup.LargeObjects) error {
	about := object{kind: largeObject, name: oid}
	at := place{object: about.sql(), owner: o.Owner}
	if owner := p.roles.heir(o.Owner); owner != p.roles.Owner {
		if err := p.do(step{sql: "ALTER " + about.sql() + " OWNER TO " + roleSQL(owner), at: at}); err != nil {
			return err
		}
	}
	return p.grants(grants{at, accessGrants(about, o)})
}

// accessGrants are statements that lead from a new large object's privileges, which are its owner's, to those that these have.
// None are named where they are as PostgreSQL makes them; otherwise all are, those of the owner too.
func accessGrants(about object, o backup.LargeObjects) []grant {
	if len(o.Grants) == 0 {
		return nil
	}
	var given []grant
	for _, g := range o.Grants {
		of := grant{object: about, grantee: g.Grantee, grantor: g.Grantor, whole: all[about.kind]}
		if of.grantor == o.Owner {
			of.grantor = ""
		}
		if of.grantee == "PUBLIC" {
			of.grantee = everybody
		}
		for _, of.option = range []bool{false, true} {
			of.privileges = nil
			for _, name := range g.Privileges {
				if slices.Contains(g.WithOption, name) == of.option {
					of.privileges = append(of.privileges, privilege{name: name})
				}
			}
			if len(of.privileges) > 0 {
				given = append(given, of)
			}
		}
	}
	whole := []privilege{{name: "SELECT"}, {name: "UPDATE"}}
	first := []grant{{object: about, revoke: true, privileges: whole, grantee: o.Owner, whole: all[about.kind]}}
	ordered, groundless := pg.InOrder(given, grant.inOrder)
	return slices.Concat(first, ordered, groundless) // the server says what is wrong with the last
}

// inOrder is what the order of grants depends on.
func (g grant) inOrder() pg.Grant {
	of := pg.Grant{Grantor: g.grantor, Grantee: g.grantee, Option: g.option}
	for _, p := range g.privileges {
		of.Privileges = append(of.Privileges, p.name)
	}
	return of
}

// CompareLargeObjects says where the copy's large objects belong to others than those of the backup, or have other privileges.
func (r Roles) CompareLargeObjects(ofBackup, ofCopy []backup.LargeObjects) (list []Difference) {
	b := balance{}
	for _, o := range r.said(ofBackup) {
		b.add(o.object, o.object+o.says, 1)
	}
	for _, o := range (Roles{same: true}).said(ofCopy) {
		b.add(o.object, o.object+o.says, -1)
	}
	return b.differences()
}

// saying is what is said of a range.
type saying struct{ object, says string }

func (r Roles) said(list []backup.LargeObjects) (said []saying) {
	last := ""
	from := ""
	for _, o := range list {
		now := r.accessTo(o)
		first, end := strconv.FormatUint(uint64(o.First), 10), strconv.FormatUint(uint64(o.Last), 10)
		if now != last || len(said) == 0 {
			said, from, last = append(said, saying{}), first, now
		}
		said[len(said)-1] = saying{"large objects from " + from, now + " up to " + end}
	}
	return said
}

// accessTo is who owns a range and what others may do with it.
func (r Roles) accessTo(o backup.LargeObjects) string {
	owner := r.heir(o.Owner)
	var items []string
	for _, g := range settled(owner, r.grants(o.Owner, accessGrants(object{kind: largeObject}, o))) {
		items = append(items, g.sql()+" BY "+roleSQL(g.grantor))
	}
	slices.Sort(items)
	return strings.Join(items, "; ") + " OWNER " + roleSQL(owner)
}
