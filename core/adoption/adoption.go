// Package adoption holds the rules of how a database gets a record that stands on a server and that the metadata do not know, as
// after they went back in time: what can be told of it from what its agent has, and what cannot come back.
package adoption

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
)

// Fate is what becomes of a database once it has a record.
type Fate string

// The fates.
const (
	Serves  Fate = "serves"  // it goes on as it is
	Deleted Fate = "deleted" // its server has it out of service: it is one of the deleted ones, and can be recovered
	Lost    Fate = "lost"    // its server has nothing that could serve: it is deleted, and there is nothing to recover
	Dropped Fate = "dropped" // it is deleted, with a verified backup before
	Bare    Fate = "bare"    // it is deleted without a backup
	Left    Fate = "left"    // it is another server's database: this one gives up what it still has of it
)

// Input is the input of an operation that adopts a database.
type Input struct {
	Fate Fate `json:"fate"`
	// Open says that customers may log in, as the server had it; Generation is that of the access by which it is told so.
	Open       bool     `json:"open"`
	Generation int64    `json:"generation"`
	Notes      []string `json:"notes"`
	By         string   `json:"by"` // the operator, and why
	Reason     string   `json:"reason"`
}

// Result is the result of one that succeeded: what could not come back, and what is to be done about it.
type Result struct {
	Notes []string `json:"notes"`
}

// Found is what is told of a database by what its agent has of it.
type Found struct {
	// Record lacks what the server does not know: account, server, and times.
	Record database.Record
	Fate   Fate
	Open   bool
	// Credentials are the generations of the logins' passwords.
	Credentials map[database.Login]int64
	Roles       []role.Role // without IDs and passwords
	Networks    []netip.Prefix
	Notes       []string
}

// Wanted is what an operator wants to become of a database.
type Wanted struct {
	Drop bool
	// Bare has it deleted without a backup.
	Bare bool
}

// Look says what would be adopted. DATABASE_STATE_CONFLICT: it has not the marks of this service, or there is nothing of it that
// could be adopted. What is to be dropped need not be whole.
func Look(has command.InventoryDatabase, want Wanted) (Found, error) {
	if err := marked(has); err != nil {
		return Found{}, err
	}
	f := Found{Record: database.Record{
		ID: has.DatabaseID, Name: has.Name, DisplayName: has.Name, RoleModel: has.RoleModel, ConnectionCap: has.ConnectionCap,
		Status: database.Creating, Settings: database.NoSettings(), Overlay: database.Overlay{OverlayStatus: database.NoOverlay},
		AccessGeneration: 1, AllowlistGeneration: 1,
	}, Open: has.Open, Fate: Serves, Networks: has.Networks, Credentials: make(map[database.Login]int64)}
	f.Record.SettingsGeneration = 1
	switch whole := has.Made && has.Actual != nil; {
	case !whole && !want.Drop:
		return Found{}, fault.New(fault.DatabaseStateConflict,
			"there is nothing to adopt: its making was never completed, or PostgreSQL has lost it; drop-unknown removes the rest")
	case !whole:
		f.Fate, f.Open = Lost, false
	case has.Isolated != "":
		f.Fate, f.Open = Deleted, false
	case want.Bare:
		f.Fate = Bare
	case want.Drop:
		f.Fate = Dropped
	}
	f.settings(has)
	f.roles(has)
	f.say("not known to the server, and as of a new database: display name, environment, members, invitations, keys that were " +
		"bound to it, enrolments, schedule of backups, and whether it was a preview")
	f.say("the passwords that are in force go on working, and nobody can be shown them: its owner rotates each, of the logins by "+
		"POST /api/v1/databases/%s/managed-roles/LOGIN/rotate; or pgherd admin database rotate-owner", has.DatabaseID)
	f.say("its backups: pgherd admin backup adopt --database %s", has.DatabaseID)
	return f, nil
}

// marked refuses what the agent has not made: its row of the ledger names a database by its OID, which has its name, and belongs
// to the holder that the agent made for it.
func marked(has command.InventoryDatabase) error {
	no := func(format string, args ...any) error {
		return fault.New(fault.DatabaseStateConflict, "it is not as this service makes databases: "+format, args...)
	}
	if has.Actual == nil {
		return nil
	}
	name := has.Name
	if has.Isolated != "" {
		name = has.Isolated
	}
	if holder := database.RoleNames(has.DatabaseID, has.Name).Holder; has.Actual.Owner != holder {
		return no("it belongs to %s, and not to %s", has.Actual.Owner, holder)
	}
	if has.Actual.Name != name {
		return no("PostgreSQL calls it %s, and not %s", has.Actual.Name, name)
	}
	return nil
}

func (f *Found) say(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// settings are told by what is set. What an operator sees of it afterwards is what the server had.
func (f *Found) settings(has command.InventoryDatabase) {
	switch {
	case has.Closed && has.ReadOnly:
		f.Record.StorageStatus = database.StorageClosed
	case has.ReadOnly:
		f.Record.StorageStatus = database.StorageFull
	}
	if has.Timeouts == nil {
		return
	}
	for _, p := range querytimeout.Profiles {
		l := querytimeout.Policy[p]
		if (command.Timeouts{
			StatementMs: l.Statement.Milliseconds(), LockMs: l.Lock.Milliseconds(),
			IdleInTransactionMs: l.IdleInTransaction.Milliseconds(),
		}) == *has.Timeouts {
			f.Record.TimeoutProfile, f.Record.TimeoutEffective = p, p
			return
		}
	}
	f.say("its query timeouts are those of no profile, and are taken off")
}

// roles are the logins, the groups of an overlay, and the additional roles. Of one that may not log in nobody knows a password
// any more: it is one that was revoked.
func (f *Found) roles(has command.InventoryDatabase) {
	for _, r := range has.Roles {
		switch r.Part {
		case command.PartOwner, command.PartRuntime, command.PartReadonly:
			f.Credentials[database.Login(r.Part)] = max(1, r.CredentialGeneration)
		case command.PartAdditional:
			f.additional(r)
		}
	}
	if OptedIn(has) {
		f.Record.OverlayStatus, f.Record.OverlayGeneration = database.OverlayActive, 1
	}
	slices.SortFunc(f.Roles, func(a, b role.Role) int { return a.Ordinal - b.Ordinal })
}

func (f *Found) additional(r command.InventoryRole) {
	one, err := Role(f.Record, r)
	if err != nil {
		f.say("the role %s was not adopted: the server has not all of it", r.Name)
		return
	}
	f.Record.RoleOrdinal = max(f.Record.RoleOrdinal, one.Ordinal)
	f.Record.RoleGeneration = 1
	f.Roles = append(f.Roles, one)
}

// Pick finds the database that a text names among those that a ledger has: by its ID, or by its name.
func Pick(all []command.InventoryDatabase, text string) (command.InventoryDatabase, error) {
	for _, d := range all {
		if string(d.DatabaseID) == text || d.Name == strings.TrimSpace(text) {
			return d, nil
		}
	}
	return command.InventoryDatabase{}, fault.Invalid("database", "is none that the agent of the server has")
}
