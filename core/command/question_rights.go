package command

import "github.com/pgherd/pgherd/core/id"

// AskRights asks which of the rights that a database is given when it is made are still there. The agent reads PostgreSQL's own
// catalogs there, and nothing of the customer's runs. ReasonNotFound: there is no such database in service.
type AskRights struct {
	Returns[Rights] `json:"-"`
	DatabaseID      id.DatabaseID `json:"-" path:"id"`
}

// Rights are facts, as those of Inventory are.
type Rights struct {
	// Unread says why the database could not be looked into for now, which a customer can cause; the rest is then empty.
	Unread string `json:"unread,omitempty"`
	// PublicOwner owns the schema public; empty: there is none. PublicOwnerLogin says that it is, or was, a login of a customer's
	// of whatever database.
	PublicOwner      string `json:"publicOwner,omitempty"`
	PublicOwnerLogin bool   `json:"publicOwnerLogin,omitempty"`
	// Groups are the rights of the database's groups on what the service names; a right that a group does not have is missing.
	Groups []GroupRight `json:"groups,omitempty"`
	// Overlay says whether the overlay of a database with a single login stands: both groups, and the sign that they were given
	// all their rights. It is left out of other databases.
	Overlay *bool `json:"overlay,omitempty"`
}

// GroupRight are the privileges of a group on something, in lower case and sorted.
type GroupRight struct {
	Role       string   `json:"role"`
	On         RightsOn `json:"on"`
	Privileges []string `json:"privileges"`
}

// RightsOn is what groups have rights on: the schema public, or what the owner login makes from now on, in any schema.
type RightsOn string

// What groups have rights on.
const (
	OnPublic         RightsOn = "schema public"
	OnLaterSchemas   RightsOn = "later schemas"
	OnLaterTables    RightsOn = "later tables"
	OnLaterSequences RightsOn = "later sequences"
)

// Route implements Question.
func (AskRights) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/rights"} }

// Check implements Question.
func (q AskRights) Check() error { return checkDatabase(q.DatabaseID) }
