package sidecar

import "maps"

// acl is what each has been granted by whom, and whether with grant option.
type acl map[giving]map[privilege]bool

// giving is what PostgreSQL keeps together: no grantor is the owner, no column the whole object.
type giving struct{ grantee, grantor, column string }

func (a acl) give(to giving, p privilege, option bool) {
	if a[to] == nil {
		a[to] = map[privilege]bool{}
	}
	a[to][p] = a[to][p] || option
}

// settled are the statements that pg_dump writes for an object with these: the fewest. Where grants to a former owner and to
// the present one have become the same, they are fewer than before.
func settled(owner string, list []grant) (fewest []grant) {
	if len(list) == 0 {
		return nil
	}
	about := list[0].object
	whole := list[0].whole
	first, now := initial(owner, about, whole), initial(owner, about, whole)
	for _, g := range list {
		for _, p := range g.privileges {
			if g.revoke {
				delete(now[giving{g.grantee, "", p.column}], p)
				continue
			}
			now.give(giving{g.grantee, g.grantor, p.column}, p, g.option)
		}
	}
	for _, of := range []struct {
		has, other acl
		revoke     bool
	}{{first, now, true}, {now, first, false}} {
		for to, privileges := range of.has {
			if maps.Equal(privileges, of.other[to]) {
				continue
			}
			for p, option := range privileges {
				fewest = append(fewest, grant{object: about, revoke: of.revoke, privileges: []privilege{p}, grantee: to.grantee,
					option: option && !of.revoke, grantor: to.grantor})
			}
		}
	}
	return fewest
}

// initial is what is granted on a new object, whose owner has the whole.
func initial(owner string, about object, whole []string) acl {
	a := acl{}
	for _, name := range whole {
		a.give(giving{grantee: owner}, privilege{name: name}, false)
	}
	for _, p := range grantedToEverybody(about) {
		a.give(giving{grantee: everybody}, p, false)
	}
	return a
}
