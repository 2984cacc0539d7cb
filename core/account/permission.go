package account

import "github.com/pgherd/pgherd/core/fault"

// Standing is a caller's relation to one database.
type Standing string

// The standings, from most to least.
const (
	Owner     Standing = "owner"
	Admin     Standing = "admin"
	Developer Standing = "developer"
	Viewer    Standing = "viewer"
)

// Action is an action on one database that requires a permission.
type Action string

// The actions.
const (
	See           Action = "see"            // the database, its operations, its backups; download a backup
	ManageBackups Action = "manage_backups" // trigger or delete a backup
	Configure     Action = "configure"      // environment, lifecycle, allowlist, roles, extensions; what its logins run
	Own           Action = "own"            // query timeouts, members, webhooks, create, delete, recover, managed restore
)

// Permissions is the one table of who may do what.
var Permissions = map[Action]map[Standing]bool{
	See:           {Owner: true, Admin: true, Developer: true, Viewer: true},
	ManageBackups: {Owner: true, Admin: true, Developer: true, Viewer: false},
	Configure:     {Owner: true, Admin: true, Developer: false, Viewer: false},
	Own:           {Owner: true, Admin: false, Developer: false, Viewer: false},
}

// Permit returns FORBIDDEN if the table does not allow the action.
func Permit(s Standing, a Action) error {
	if Permissions[a][s] {
		return nil
	}
	return fault.New(fault.Forbidden, "the role %s on this database does not allow this", s)
}
