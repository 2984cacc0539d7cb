package sidecar

import (
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/backup"
)

// LargeObject is who a large object belongs to, and who may do what with it.
type LargeObject struct {
	OID   uint32
	Owner string
	// Grants are all privileges, those of the owner itself included. Kind and Object are not used.
	Grants []backup.Grant
}

// largeObject plans the owner and the privileges of one.
func (p *planner) largeObject(o LargeObject) error {
	if len(p.pending) > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	about := object{kind: largeObject, name: strconv.FormatUint(uint64(o.OID), 10)}
	p.at = place{object: about.sql(), owner: o.Owner}
	if owner := p.roles.heir(o.Owner); owner != p.roles.Owner {
		if err := p.do(step{sql: "ALTER " + about.sql() + " OWNER TO " + roleSQL(owner), at: p.at}); err != nil {
			return err
		}
	}
	p.pending = o.grants(about)
	return p.flush()
}

// grants are statements that lead from a new large object's privileges, which are its owner's, to those that it has.
func (o LargeObject) grants(about object) (list []grant) {
	whole := []privilege{{name: "SELECT"}, {name: "UPDATE"}}
	var given []grant
	for _, g := range o.Grants {
		grantor, grantee := g.Grantor, g.Grantee
		if grantor == o.Owner {
			grantor = ""
		}
		if grantee == "PUBLIC" {
			grantee = everybody
		}
		for _, option := range []bool{false, true} {
			of := grant{object: about, grantee: grantee, grantor: grantor, option: option}
			for _, name := range g.Privileges {
				if slices.Contains(g.WithOption, name) == option {
					of.privileges = append(of.privileges, privilege{name: name})
				}
			}
			if len(of.privileges) > 0 {
				given = append(given, of)
			}
		}
	}
	list = append(list, grant{object: about, revoke: true, privileges: whole, grantee: o.Owner})
	return append(list, inOrder(given)...)
}

// inOrder puts those first that others rest on.
func inOrder(list []grant) (ordered []grant) {
	passed := map[held]bool{}
	for len(list) > 0 {
		var later []grant
		for _, g := range list {
			if g.grantor != "" && len(passable(passed, g.grantor, g.privileges)) < len(g.privileges) {
				later = append(later, g)
				continue
			}
			for _, p := range g.privileges {
				passed[held{g.grantee, p}] = passed[held{g.grantee, p}] || g.option
			}
			ordered = append(ordered, g)
		}
		if len(later) == len(list) {
			return append(ordered, later...) // the server says what is wrong with them
		}
		list = later
	}
	return ordered
}
