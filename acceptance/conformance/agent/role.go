package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/role"
)

// roleCases are the cases of the commands about roles.
var roleCases = map[string]func(t *testing.T, s Stand){
	"role prepared does not get in":           rolePrepared,
	"role admitted gets in":                   roleAdmitted,
	"role admitted without preparation":       roleAdmittedUnprepared,
	"role set up with another payload":        roleConflict,
	"role admitted without CONNECT":           roleNeedsConnect,
	"role admitted past its validity":         roleAdmittedTooLate,
	"role rotated without CONNECT":            roleLosesConnect,
	"role of a foreign name":                  roleForeignName,
	"role of no database":                     roleOfNothing,
	"role keeps to its connection limit":      roleLimit,
	"role that reads":                         roleReadOnly,
	"role that writes":                        roleReadWrite,
	"role without grants":                     roleCustom,
	"role rotated":                            roleRotated,
	"role rotated again is the same":          roleRotatedAgain,
	"role rotated at once":                    roleRotatedAtOnce,
	"role rotated past its validity":          roleRotatedTooLate,
	"role rotated after a drift":              roleRotatedAfterDrift,
	"role rotated that is absent":             roleRotatedAbsent,
	"logins of the database rotated":          loginsRotated,
	"role revoked":                            roleRevoked,
	"role expired":                            roleExpired,
	"role expired after a late rotation":      roleExpiredAfterLapse,
	"role revoked after its expiry":           roleRevokedAfterExpiry,
	"role revoked after a drift":              roleRevokedAfterDrift,
	"role revoked that is absent":             roleRevokedAbsent,
	"role of a lower generation":              roleStale,
	"role of a lower generation than revoked": roleStaleAfterRevocation,
	"role of a lower generation than removed": roleStaleAfterRemoval,
	"role of a lower generation than others":  roleStaleAlone,
	"role of a lower credential":              roleStaleCredential,
	"role of another's name":                  roleOfAnother,
	"role rotated in vain":                    roleRotatedInVain,
	"role removed in vain":                    roleRemovedInVain,
	"database stopped in vain":                stoppedInVain,
	"role removed":                            roleRemoved,
	"role removed that was never opened":      roleRemovedUnopened,
	"role removed that is absent":             roleRemovedAbsent,
	"role kept by a grant":                    roleKeptByGrant,
	"role kept by what it owns":               roleKeptByObject,
	"role kept by a policy":                   roleKeptByPolicy,
	"role kept by many things":                roleKeptByMany,
	"role kept by another database":           roleKeptElsewhere,
	"role of a stopped database":              roleClosed,
	"role admitted in a stopped database":     roleAdmittedStopped,
	"role shut in a stopped database":         roleShutWhileClosed,
	"roles after a start":                     roleStarted,
	"roles of databases are apart":            rolesApart,
}

// differing are the cases in which the roles of a database with a single login could do otherwise than managed ones: they differ
// in who grants CONNECT, in when their groups were made, and in their names.
var differing = []string{
	"role prepared does not get in", "role admitted gets in", "role admitted without preparation", "role admitted without CONNECT",
	"role rotated without CONNECT", "role of a foreign name", "role of no database", "role that reads", "role that writes",
	"role without grants", "role rotated", "role rotated that is absent", "role revoked", "role expired",
	"role of a lower generation", "role of a lower generation than removed", "role of another's name", "role removed",
	"role removed that was never opened", "role removed that is absent", "role kept by a grant", "role kept by another database",
	"role of a stopped database",
	"roles after a start", "roles of databases are apart", "isolated database with half a role", "purged database with half a role",
}

// withLegacy adds the cases of differing with roles of the other model.
func withLegacy(cases map[string]func(t *testing.T, s Stand)) {
	for _, name := range differing {
		test := cases[name]
		cases["legacy "+name] = func(t *testing.T, s Stand) { s.roles = role.LegacyRoles; test(t, s) }
	}
}
