package fakeagent

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// dependent is something that depends on a role, and the database in which it stands.
type dependent struct {
	in id.DatabaseID
	is role.Dependency
}

// found are the dependencies that count for the account: those in the role's own database as they are, those in another one of
// the account as no more than that.
func found(dependents []dependent, own id.DatabaseID, account []id.DatabaseID) role.Dependencies {
	others := map[id.DatabaseID]bool{}
	for _, db := range account {
		others[db] = true
	}
	var result role.Dependencies
	for _, d := range dependents {
		switch {
		case d.in == own:
		case others[d.in]:
			d.is.Kind = role.OtherDatabase
		default:
			continue
		}
		if len(result.List) == role.MaxDependencies {
			result.Truncated = true
			break
		}
		result.List = append(result.List, d.is)
	}
	return result
}
