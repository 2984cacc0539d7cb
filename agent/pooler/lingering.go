package pooler

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// PgBouncer frees an entry that a RELOAD finds no longer in its files, and all that it knows of its logins, but it forgets those
// who are in the middle of a log-in there. Such a client goes on in memory that the next new entry gets: it comes in there as a
// login of that database, or PgBouncer ends or spins (seen with 1.24.1 and 1.26.1). So the entries of a database that is gone
// linger in the files. Nobody can begin a log-in at them, since they name a database for verifiers that PgBouncer does not have:
// it ends such a client before it has asked for a verifier. They leave with a later reload, once none of those is left who were
// in the middle of a log-in when the entries began to linger. PgBouncer ends a log-in after 5 s (client_login_timeout), and
// one that waits in line for its verifier after 30 s (query_wait_timeout).
//
// What lingers is what the files have and the desired state has not. So an agent that starts knows it, and a database of the
// same name can be made at any time.
//
// Nothing else that a RELOAD changes is in use by a log-in: an entry with other values stays where it is in memory, a user of
// [users] is never freed, and the rules of the HBA file are looked at when a log-in begins, and then no more.

// goneDatabase is what lingering entries name in auth_dbname. No entry has this name. PgBouncer logs it for whoever comes to one.
const goneDatabase = "pgherd_gone"

// lingeringCap bounds the server connections of who was in the middle of a log-in when the entries began to linger.
const lingeringCap = 1

// lingeringEntries are the entries of lingering databases, as SHOW DATABASES reports them.
func (s State) lingeringEntries() (entries []entry) {
	for _, database := range s.Lingering {
		both := entriesOf(s.Settings, Entry{Database: database, ConnectionCap: lingeringCap})
		entries = append(entries, both[:]...)
	}
	return entries
}

// goneFrom returns the databases that the lines of a file have entries of and a state has not, sorted.
func goneFrom(s State, lines map[string]string) (gone []string) {
	stays := map[string]bool{s.Settings.MaintenanceDatabase: true}
	for _, e := range s.Entries {
		stays[e.Database] = true
	}
	for name := range lines {
		database := strings.TrimSuffix(name, TransactionSuffix)
		if !stays[database] && databaseName.MatchString(database) {
			gone = append(gone, database)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

// vigil has for each lingering database the clients that may be in the middle of a log-in there, by their IDs. It begins once
// PgBouncer was seen to let nobody begin one, so clients only leave it. It does not have a database whose vigil has not begun.
type vigil map[string]map[string]bool

// over reports whether nobody can be in the middle of a log-in at the entries of a database: they may leave PgBouncer.
func (v vigil) over(database string) bool {
	held, begun := v[database]
	return begun && len(held) == 0
}

// begin adds a database with who may be logging in at it now. logins are the entries by client, empty where that can be any.
func (v vigil) begin(database string, logins map[string]string) {
	held := map[string]bool{}
	for id, entry := range logins {
		if entry == "" || slices.Contains(EntryNames(database), entry) {
			held[id] = true
		}
	}
	v[database] = held
}

// narrow drops who is no longer logging in there; PgBouncer never reuses an ID.
func (v vigil) narrow(logins map[string]string) {
	for database, held := range v {
		maps.DeleteFunc(held, func(id string, _ bool) bool {
			entry, still := logins[id]
			return !still || entry != "" && !slices.Contains(EntryNames(database), entry)
		})
	}
}

// lingering returns the databases whose entries must stay in the files beside a state's.
func (p *Pooler) lingering(ctx context.Context, s State) ([]string, error) {
	entries, err := storedEntries(s.Settings.Dir)
	if err != nil {
		return nil, err
	}
	gone := goneFrom(s, entries)
	maps.DeleteFunc(p.vigil, func(database string, _ map[string]bool) bool { return !slices.Contains(gone, database) })
	if len(p.vigil) > 0 {
		p.lookAgain(ctx)
	}
	return slices.DeleteFunc(gone, p.vigil.over), nil
}

// lookAgain narrows the vigils. They begin anew where PgBouncer uses another state than it was seen to use, or does not answer:
// it may have let somebody begin a log-in.
func (p *Pooler) lookAgain(ctx context.Context) {
	if mark, err := p.mark(ctx); err == nil && mark == p.seen {
		if logins, err := p.loggingIn(ctx); err == nil {
			p.vigil.narrow(logins)
			return
		}
	}
	clear(p.vigil)
}

// watchOver begins the vigils of what lingers in the state that PgBouncer was seen to use.
func (p *Pooler) watchOver(ctx context.Context, s State, mark string) {
	p.seen = mark
	begun := func(database string) bool { _, begun := p.vigil[database]; return begun }
	fresh := slices.DeleteFunc(slices.Clone(s.Lingering), begun)
	if len(fresh) == 0 {
		return
	}
	logins, err := p.loggingIn(ctx)
	if err != nil {
		return // the next round begins them
	}
	for _, database := range fresh {
		p.vigil.begin(database, logins)
	}
}

// loggingIn returns the clients that may be in the middle of a log-in, with their entries. While its verifier is asked for, or
// it waits for that, a client is listed at the maintenance database, whatever its own entry is, which is then left empty. Who
// has not said where it wants to go is at no entry.
func (c *Console) loggingIn(ctx context.Context) (map[string]string, error) {
	logins := map[string]string{}
	err := c.each(ctx, "SHOW SOCKETS", func(r row) error {
		switch entry := r.text("database"); {
		case r.text("type") != "C":
		case entry == c.settings.MaintenanceDatabase:
			logins[r.text("id")] = ""
		case r.text("state") == "cl_login":
			logins[r.text("id")] = entry
		}
		return nil
	})
	return logins, err
}
