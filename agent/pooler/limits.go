package pooler

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
)

// Until it ends, PgBouncer keeps each name that it read in [users], and the limit that it last read there; since 1.26 a name
// takes some 110 KiB. So a login without a limit has no line, except one whose limit was lifted: that has a line once, which says
// 0, and PgBouncer keeps that too. Only PgBouncer knows which logins need it, for the login of a database long gone may have had
// the same name: the read-back finds them.

// limited returns the logins that have a line in [users].
func (s State) limited() []Login {
	lifted := make(map[string]bool, len(s.Lifted))
	for _, name := range s.Lifted {
		lifted[name] = true
	}
	var logins []Login
	for _, e := range s.Entries {
		for _, l := range e.Logins {
			if l.MaxConnections > 0 || lifted[l.Name] {
				logins = append(logins, l)
			}
		}
	}
	return logins
}

func renderUsers(s State) []byte {
	var out bytes.Buffer
	out.WriteString("[users]\n")
	for _, l := range descendingLogins(s.limited()) {
		out.WriteString(l.Name + " = max_user_connections=" + strconv.Itoa(l.MaxConnections) + "\n")
	}
	return out.Bytes()
}

// readBackLogins compares the limits that PgBouncer goes by with a state's. It returns the logins that have neither a limit nor
// a line, and that PgBouncer holds to a limit all the same, and counts the former users.
func (c *Console) readBackLogins(ctx context.Context, s State) (toLift []string, err error) {
	limits, lines := make(map[string]int64), make(map[string]bool)
	for _, e := range s.Entries {
		for _, l := range e.Logins {
			limits[l.Name] = int64(l.MaxConnections)
		}
	}
	for _, l := range s.limited() {
		lines[l.Name] = true
	}
	former := int64(0)
	err = c.each(ctx, "SHOW USERS", func(r row) error {
		name, shown := r.text("name"), r.number("max_user_connections")
		want, ok := limits[name]
		switch {
		case slices.Contains(c.ownUsers(), name) || ok && shown == want:
		case !ok:
			former++
		case lines[name]:
			return fmt.Errorf("%w: login %q has limit %d, not %d", ErrNotTakenOver, name, shown, want)
		default:
			toLift = append(toLift, name)
		}
		delete(lines, name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.former.Store(former)
	for name := range lines {
		return nil, fmt.Errorf("%w: login %q is missing", ErrNotTakenOver, name)
	}
	return toLift, nil
}

// ownUsers are PgBouncer's users that are no logins of databases.
func (c *Console) ownUsers() []string {
	return []string{adminDatabase, c.settings.AuthUser, c.settings.AdminUser}
}

// FormerUsers is how many users PgBouncer had at the last reload that are no longer logins of any database. It forgets them when
// it is restarted.
func (c *Console) FormerUsers() int64 { return c.former.Load() }
