package role

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

// Model is what differs between the additional roles of managed databases and those of databases with a single login, which the
// spec calls legacy roles. A database has one of the two.
type Model struct {
	Of       database.RoleModel
	Gate     rollout.Gate
	Conflict fault.Code // of the refusals
	// OwnerConnects means that the owner grants CONNECT to a role that is prepared. Otherwise the service does so.
	OwnerConnects bool
	maxRoles      int    // of one database, revoked ones counted
	maxLimit      int    // of one role's connections, which no budget bounds; 0: the database's budget does
	infix         string // of usernames, before the ordinal
}

// The models.
var (
	ManagedRoles = Model{
		Of: database.Managed, Gate: rollout.AdditionalRoles, Conflict: fault.ManagedRoleConflict, maxRoles: MaxRoles, infix: "_c",
	}
	LegacyRoles = Model{
		Of: database.SingleLogin, Gate: rollout.LegacyRoles, Conflict: fault.LegacyRoleConflict, OwnerConnects: true,
		maxRoles: MaxLegacyRoles, maxLimit: MaxLegacyLimit, infix: "_l",
	}
)

// ModelOf is the model of the databases of a role model.
func ModelOf(m database.RoleModel) Model {
	if m == database.SingleLogin {
		return LegacyRoles
	}
	return ManagedRoles
}

// Username returns the PostgreSQL name of a role. It never changes.
func (m Model) Username(db id.DatabaseID, ordinal int) string {
	return "pgh_" + id.Compact(db) + m.infix + strconv.Itoa(ordinal)
}

var ordinalPattern = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

// Names reports whether a username has the shape of one of the model's roles of a database.
func (m Model) Names(db id.DatabaseID, username string) bool {
	_, ok := m.Ordinal(db, username)
	return ok
}

// Ordinal is that of the role of a database that has a username; false where it is none of the model's.
func (m Model) Ordinal(db id.DatabaseID, username string) (int, bool) {
	text, ok := strings.CutPrefix(username, "pgh_"+id.Compact(db)+m.infix)
	if !ok || !ordinalPattern.MatchString(text) {
		return 0, false
	}
	ordinal, err := strconv.Atoi(text)
	return ordinal, err == nil
}

// Refusal gives the refusals of the machine the model's own code. Other errors stay as they are.
func (m Model) Refusal(err error) error {
	if !fault.Has(err, fault.ManagedRoleConflict) {
		return err
	}
	return fault.Recode(err, m.Conflict)
}
