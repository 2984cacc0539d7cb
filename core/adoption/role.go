package adoption

import (
	"strconv"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
)

// Role is an additional role of a database as its server has it, without IDs and password. One that may not log in is one that
// was revoked: nobody knows its password. DATABASE_STATE_CONFLICT: it is none that this service makes, or the server has not all
// of it.
func Role(of database.Record, r command.InventoryRole) (role.Role, error) {
	ordinal, ok := role.ModelOf(of.RoleModel).Ordinal(of.ID, r.Name)
	if r.Part != command.PartAdditional || !ok || r.Actual == nil || r.Limit == 0 {
		return role.Role{}, fault.New(fault.DatabaseStateConflict,
			"%s is no additional role of which the server has all that this service makes", r.Name)
	}
	key := idempotency.Key(idempotency.InternalPrefix + "adopted-" + strconv.Itoa(ordinal))
	one := role.Role{
		DatabaseID: of.ID, Ordinal: ordinal, Username: r.Name, DisplayName: r.Name, AccessProfile: role.Custom,
		ConnectionLimit: r.Limit, Status: role.Revoked, Key: key, Fingerprint: idempotency.NewFingerprint(string(key)),
		Generation: 1, CredentialGeneration: max(1, r.CredentialGeneration),
	}
	n := database.RoleNames(of.ID, of.Name)
	for _, m := range r.Actual.MemberOf {
		switch m.Role {
		case n.ReadGroup:
			one.AccessProfile = role.ReadOnly
		case n.WriteGroup:
			one.AccessProfile = role.ReadWrite
		}
	}
	if r.Enabled {
		one.Status, one.CredentialExpiresAt = role.Ready, r.Actual.ValidUntil
	}
	return one, nil
}

// OptedIn reports whether a server has the groups of the additional roles of a database with a single login.
func OptedIn(has command.InventoryDatabase) bool {
	groups := 0
	for _, r := range has.Roles {
		if r.Part == command.PartReadGroup || r.Part == command.PartWriteGroup {
			groups++
		}
	}
	return has.RoleModel == database.SingleLogin && groups == 2
}
