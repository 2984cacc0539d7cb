package sidecar

// held is a privilege that a role can pass on.
type held struct {
	role string
	privilege
}

// grants are statements about the privileges of one object, in the order of the dump: whoever passes a privilege on has got it
// before.
type grants struct {
	place // of the first
	list  []grant
}

// grants are those of an object under the present names, by its owner under the former.
//
// With roles that are gone they come to what REASSIGN OWNED and DROP OWNED would have left of them: what the object's owner
// has granted and has is now the new owner's, and any other grant to a role that is gone, by it, or that rests on such a one,
// is left out.
func (r Roles) grants(owner string, list []grant) (kept []grant) {
	_, ownerStands := r.now(owner)
	passed := map[held]bool{} // with grant option, on this object
	left := false
	for _, g := range list {
		grantee, ok := r.now(g.grantee)
		if !ok && g.grantee == owner {
			grantee, ok = r.Owner, true
		}
		grantor, stands := r.now(g.grantor) // that the owner is it always stands
		// The owner has it all the same, and could not get the option back from one who has it from the owner.
		toHeir := !ownerStands && g.grantor != "" && grantee == r.Owner
		if !ok || !stands || toHeir {
			left = true
			continue
		}
		if grantor == r.heir(owner) {
			grantor = ""
		}
		g.grantee, g.grantor = grantee, grantor
		if left && grantor != "" && !g.revoke {
			g.privileges = passable(passed, grantor, g.privileges)
		}
		if len(g.privileges) == 0 {
			continue
		}
		for _, p := range g.privileges {
			if g.option {
				passed[held{grantee, p}] = true
			}
		}
		kept = append(kept, g)
	}
	return kept
}

// passable are those privileges that a role can pass on. Who can do so on the whole can do so on each column.
func passable(passed map[held]bool, role string, list []privilege) (kept []privilege) {
	for _, p := range list {
		if passed[held{role, p}] || passed[held{role, privilege{name: p.name}}] {
			kept = append(kept, p)
		}
	}
	return kept
}

func (g grant) sql() string {
	if g.revoke {
		return "REVOKE " + listed(g.privileges) + " ON " + g.object.sql() + " FROM " + roleSQL(g.grantee)
	}
	return "GRANT " + listed(g.privileges) + " ON " + g.object.sql() + " TO " + roleSQL(g.grantee) + withOption(g.option)
}

func withOption(option bool) string {
	if option {
		return " WITH GRANT OPTION"
	}
	return ""
}

// defaults are default privileges under the present names; ok is false where one of the roles is gone.
func (r Roles) defaults(d defaults) (now defaults, ok bool) {
	creator, stands := r.now(d.creator)
	grantee, known := r.now(d.grantee)
	d.creator, d.grantee = creator, grantee
	return d, stands && known
}

func (d defaults) sql() string {
	s := "ALTER DEFAULT PRIVILEGES FOR ROLE " + roleSQL(d.creator)
	if d.schema != "" {
		s += " IN SCHEMA " + d.schema
	}
	if d.revoke {
		return s + " REVOKE " + listed(d.privileges) + " ON " + d.kind + " FROM " + roleSQL(d.grantee)
	}
	return s + " GRANT " + listed(d.privileges) + " ON " + d.kind + " TO " + roleSQL(d.grantee) + withOption(d.option)
}
