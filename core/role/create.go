package role

import (
	"slices"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// Limits of additional roles (spec, "Limits").
const (
	MaxRoles = 10 // of one managed database, including revoked ones
	// MaxUncapped replaces MaxRoles for a database without a connection cap.
	MaxUncapped = 3
	// UncappedBudget is the role budget of a database without a connection cap.
	UncappedBudget = 20
	// MaxLegacyRoles bounds the roles of a database with a single login, including revoked ones, and MaxLegacyLimit the connections
	// of each, which share no budget.
	MaxLegacyRoles = 3
	MaxLegacyLimit = 20
)

// Request is what a user asks for.
type Request struct {
	DisplayName     string
	AccessProfile   AccessProfile
	ConnectionLimit int
	Key             idempotency.Key
}

// Check trims and checks everything that does not depend on the database. VALIDATION_ERROR names the field.
func (r Request) Check(m Model) (Request, error) {
	name, err := ValidateDisplayName(r.DisplayName)
	if err != nil {
		return r, err
	}
	r.DisplayName = name
	if _, err := ParseAccessProfile(string(r.AccessProfile)); err != nil {
		return r, err
	}
	switch {
	case m.maxLimit > 0 && (r.ConnectionLimit < 1 || r.ConnectionLimit > m.maxLimit):
		return r, fault.Invalid("connectionLimit", "must be an integer from 1 to %d", m.maxLimit)
	case r.ConnectionLimit < 1:
		return r, fault.Invalid("connectionLimit", "must be an integer of 1 or more")
	}
	return r, nil
}

// Fingerprint identifies what the request asks for.
func (r Request) Fingerprint() idempotency.Fingerprint {
	return idempotency.NewFingerprint(r.DisplayName, string(r.AccessProfile), strconv.Itoa(r.ConnectionLimit))
}

// Budget is the maximum sum of the connection limits of a database's additional roles: half of its connection cap.
func Budget(connectionCap int) int {
	if connectionCap == 0 {
		return UncappedBudget
	}
	return connectionCap / 2
}

// Scene is everything about a database that determines what may happen to its roles.
type Scene struct {
	Database database.Record
	Roles    []Role         // all but the removed ones
	Change   *Change        // the pending one of the database
	Blocking operation.Kind // of the open operation beside which logins may not change; empty where there is none
	// Passwords says that passwords may be changed beside that operation all the same.
	Passwords bool
}

// forPasswords is the scene as it is for who changes passwords alone.
func (s Scene) forPasswords() Scene {
	if s.Passwords {
		s.Blocking = ""
	}
	return s
}

// Admits decides whether a new role may be created (spec, rules 3 and 7-9 for create). VALIDATION_ERROR: the label or the
// limit. CUSTOM_ROLE_REQUIRES_V3_CLONE, but of no overlay, whose opt-in gives the groups their rights. MANAGED_ROLE_CONFLICT:
// everything else.
func (s Scene) Admits(r Request) error {
	if s.Database.RolesBarred && s.model().Of == database.Managed {
		return fault.New(fault.CustomRoleRequiresV3Clone,
			"the database was cloned from a backup that predates additional roles")
	}
	if err := s.Calm(); err != nil {
		return err
	}
	if err := s.nameFree(r.DisplayName, Role{}); err != nil {
		return err
	}
	if most := s.model().maxRoles; len(s.Roles) >= most {
		return conflictf("the database has %d additional roles, revoked ones counted; more are not possible", most)
	}
	for _, other := range s.Roles {
		if other.Status == Reserved || other.Status == SQLReady {
			return conflictf("role %s is still being made: repeat its request or its next step, or delete it", other.ID)
		}
	}
	return s.affords(r.ConnectionLimit)
}

// AdmitsReplay decides about a request whose key has already created a role (spec, rule 6). A half-created role is continued
// only where a new one could be created. MANAGED_ROLE_CONFLICT: the request was another one, the role was removed, its validity
// ended before it was ready, or the database's state forbids it.
func (s Scene) AdmitsReplay(known Role, r Request, now time.Time) error {
	if known.Fingerprint != r.Fingerprint() {
		return conflictf("this %s was used with a different request", idempotency.Header)
	}
	if known.Status == Removed {
		return conflictf("the role that this %s made has been removed", idempotency.Header)
	}
	if s.model().OwnerConnects { // each further step is a request of its own
		return nil
	}
	switch known.Status { //nolint:exhaustive // in every other status the role is made
	case Reserved:
		_, err := s.AdmitsSetup(known, Prepare, now)
		return err
	case SQLReady:
		_, err := s.AdmitsSetup(known, Admit, now)
		return err
	}
	return nil
}

// affords checks a connection limit against the budget, if the model has one.
func (s Scene) affords(limit int) error {
	if s.model().maxLimit > 0 {
		return nil
	}
	left := Budget(s.Database.ConnectionCap)
	for _, r := range s.Roles {
		left -= r.ConnectionLimit
	}
	if s.Database.ConnectionCap > 0 {
		if limit > left {
			return fault.Invalid("connectionLimit", "must be at most %d: the additional roles of this database share %d connections",
				max(left, 0), Budget(s.Database.ConnectionCap))
		}
		return nil
	}
	if limit > left || len(s.Roles) >= MaxUncapped {
		return conflictf("without a connection cap, a database has at most %d additional roles with %d connections together",
			MaxUncapped, UncappedBudget)
	}
	return nil
}

// nameFree refuses a label that another role has.
func (s Scene) nameFree(name string, own Role) error {
	for _, r := range s.Roles {
		if r.ID != own.ID && NameKey(r.DisplayName) == NameKey(name) {
			return conflictf("another role of the database has this displayName")
		}
	}
	return nil
}

// model is that of the database.
func (s Scene) model() Model { return ModelOf(s.Database.RoleModel) }

// Serves refuses a database whose additional roles are of another model.
func (s Scene) Serves(m Model) error {
	switch {
	case s.Database.RoleModel == m.Of:
		return nil
	case m.Of == database.Managed:
		return conflictf("the database has no managed SQL roles")
	}
	return conflictf("the database has managed SQL roles, and no others")
}

// AdmitsOptIn decides about the opt-in of a database with a single login, or about another one because its overlay is lost, as
// the event says. A cell without effects means that its overlay stands: then the database need only be in service.
// LEGACY_ROLE_CONFLICT.
func (s Scene) AdmitsOptIn(e database.OverlayEvent) (cell machine.Cell[database.OverlayStatus], err error) {
	if err := s.Serves(LegacyRoles); err != nil {
		return cell, LegacyRoles.Refusal(err)
	}
	cell, err = s.Database.OverlayStatus.Decide(e)
	switch {
	case err != nil:
		return cell, err
	case len(cell.Effects) > 0:
		err = s.undisturbed(database.Active)
	default:
		err = s.inStatus(database.Active, database.Stopped)
	}
	return cell, LegacyRoles.Refusal(err)
}

// Calm refuses unless the database is active, has group roles, and has no disturbing operation and no unfinished change.
func (s Scene) Calm() error {
	if !s.Database.HasGroups() {
		return conflictf("the database has not opted in for additional roles, or its opt-in is unfinished: repeat it")
	}
	return s.undisturbed(database.Active)
}

// closable is Calm for what only shuts roles out. That needs no groups. No log-in has to work for it, so the database may be
// stopped: whoever stopped it because a password was stolen need not start it again to revoke that.
func (s Scene) closable() error { return s.undisturbed(database.Active, database.Stopped) }

func (s Scene) undisturbed(statuses ...database.Status) error {
	if err := s.inStatus(statuses...); err != nil {
		return err
	}
	switch {
	case s.Blocking != "":
		return conflictf("a %s operation of the database is open", s.Blocking)
	case s.Change != nil:
		return conflictf("another change of the database's logins is unfinished: operation %s", s.Change.ID)
	}
	return nil
}

func (s Scene) inStatus(statuses ...database.Status) error {
	if slices.Contains(statuses, s.Database.Status) {
		return nil
	}
	return conflictf("the database is not active: its status is %s", s.Database.Status)
}

func conflictf(format string, args ...any) error {
	return fault.New(fault.ManagedRoleConflict, format, args...)
}
