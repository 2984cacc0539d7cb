package settings

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
)

var (
	timeoutNames = []string{ledger.StatementTimeout, ledger.LockTimeout, ledger.IdleTimeout}
	settingNames = append(pq.StringArray{ledger.ReadOnlyDefault}, timeoutNames...)
)

// settings are what the service sets for a database.
type settings struct {
	timeouts *command.Timeouts // nil: none
	readOnly bool
}

func wantedOf(c command.Configure) settings { return settings{c.Timeouts, c.ReadOnly} }

// value is what a parameter is set to, as PostgreSQL stores it; empty where it is not.
func (s settings) value(name string) string {
	if name == ledger.ReadOnlyDefault {
		if s.readOnly {
			return "on"
		}
		return ""
	}
	if s.timeouts == nil {
		return ""
	}
	return strconv.FormatInt(map[string]int64{
		ledger.StatementTimeout: s.timeouts.StatementMs, ledger.LockTimeout: s.timeouts.LockMs,
		ledger.IdleTimeout: s.timeouts.IdleInTransactionMs,
	}[name], 10)
}

// storedSetting is one entry of PostgreSQL's catalog: for one of the database's logins, or for everybody; in the database, or
// everywhere.
type storedSetting struct {
	part, role  string // empty: everybody
	here        bool
	name, value string
}

type settingsSeen struct {
	ours  settings // as the ledger has it
	owner bool     // the owner's login is still the role that we made
	all   []storedSetting
}

// of returns what is stored for everybody in the database, or for a part of its logins; empty where nothing is.
func (s settingsSeen) of(part string, here bool, name string) string {
	for _, one := range s.all {
		if one.part == part && one.here == here && one.name == name {
			return one.value
		}
	}
	return ""
}

const ownerPart = "owner"

// settingsPlan is the one place that says which statements lead to the settings of a database. It takes back only what the
// service has set and nobody has changed since, and touches no setting of another role.
type settingsPlan struct {
	ledger.Database
	seen   settingsSeen
	wanted settings
}

// statements are empty but for the row where all is as it shall be.
func (p settingsPlan) statements() []string {
	database, owner := "ALTER DATABASE "+pg.Ident(p.Name), "ALTER ROLE "+pg.Ident(p.Name)+" IN DATABASE "+pg.Ident(p.Name)
	readOnly := p.change(database, "", ledger.ReadOnlyDefault)
	all := slices.Clone(readOnly)
	for _, name := range timeoutNames {
		all = append(all, p.change(database, "", name)...)
		if p.seen.owner {
			all = append(all, p.change(owner, ownerPart, name)...)
		}
	}
	return append(all, p.rowStatement(len(all) > 0, len(readOnly) > 0))
}

// change is the statement for one parameter of the database, or of its owner's login there; none where nothing changes. What the
// owner has set for itself since the service did is its own choice, and stays until the service wants something else.
func (p settingsPlan) change(alter, part, name string) []string {
	stored, wanted, ours := p.seen.of(part, true, name), p.wanted.value(name), p.seen.ours.value(name)
	switch {
	case stored == wanted, part == ownerPart && ours == wanted:
		return nil
	case wanted != "":
		return []string{alter + " SET " + name + " = " + pg.Quote(wanted)}
	case stored == ours:
		return []string{alter + " RESET " + name}
	}
	return nil
}

// rowStatement stores what is wanted and, where something changes, that the sessions of before have yet to end.
func (p settingsPlan) rowStatement(changes, readOnlyChanges bool) string {
	timeouts := "NULL"
	if t := p.wanted.timeouts; t != nil {
		timeouts = fmt.Sprintf("'{%d,%d,%d}'", t.StatementMs, t.LockMs, t.IdleInTransactionMs)
	}
	set := fmt.Sprintf("timeouts = %s, read_only = %t", timeouts, p.wanted.readOnly)
	if changes {
		set += ", settings_since = clock_timestamp(), reconnected = false"
	}
	if readOnlyChanges {
		set += ", renewing = true"
	}
	return "UPDATE ledger.database SET " + set + " WHERE id = " + pg.Quote(p.ID)
}

// inForce is what new sessions of the owner begin with, and what other settings there are for single logins.
func (s settingsSeen) inForce() command.SettingsInForce {
	in := command.SettingsInForce{
		StatementMs: s.forOwner(ledger.StatementTimeout), LockMs: s.forOwner(ledger.LockTimeout),
		IdleInTransactionMs: s.forOwner(ledger.IdleTimeout), RoleOverrides: []command.RoleOverride{},
	}
	for _, one := range s.all {
		byUs := one.part == ownerPart && one.here && one.name != ledger.ReadOnlyDefault && one.value == s.ours.value(one.name)
		if one.part != "" && !byUs && !s.shadowed(one) {
			in.RoleOverrides = append(in.RoleOverrides, command.RoleOverride{Role: one.role, Setting: one.name, Value: one.value})
		}
	}
	return in
}

// shadowed reports whether the role of a setting that holds everywhere has one for this database too, which wins.
func (s settingsSeen) shadowed(one storedSetting) bool {
	return !one.here && slices.ContainsFunc(s.all, func(other storedSetting) bool {
		return other.here && other.role == one.role && other.name == one.name
	})
}

// forOwner is a timeout in milliseconds, from the most special place where it is set.
func (s settingsSeen) forOwner(name string) int64 {
	for _, place := range []struct {
		part string
		here bool
	}{{ownerPart, true}, {ownerPart, false}, {"", true}, {"", false}} {
		if value := s.of(place.part, place.here, name); value != "" {
			return inMilliseconds(value)
		}
	}
	return 0
}
