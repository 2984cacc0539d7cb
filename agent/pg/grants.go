package pg

// Grant is what the order of grants on one object depends on.
type Grant struct {
	Grantor, Grantee string // no grantor: the owner of the object
	Privileges       []string
	Option           bool // that the grantee may pass them on
}

// InOrder puts those grants first that others rest on: PostgreSQL takes a grant only of a role that may pass the privilege on by
// then. Groundless are those for which there is no such place.
func InOrder[G any](list []G, as func(G) Grant) (ordered, groundless []G) {
	type held struct{ role, privilege string }
	passes := map[held]bool{}
	grounded := func(g Grant) bool {
		for _, p := range g.Privileges {
			if g.Grantor != "" && !passes[held{g.Grantor, p}] {
				return false
			}
		}
		return true
	}
	for found := true; found; list = groundless {
		found, groundless = false, nil
		for _, one := range list {
			g := as(one)
			if !grounded(g) {
				groundless = append(groundless, one)
				continue
			}
			for _, p := range g.Privileges {
				passes[held{g.Grantee, p}] = passes[held{g.Grantee, p}] || g.Option
			}
			ordered, found = append(ordered, one), true
		}
	}
	return ordered, groundless
}
