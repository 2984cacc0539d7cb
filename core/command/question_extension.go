package command

import (
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// Extensions asks which extensions the server offers to a database, and which are installed there. ReasonNotFound: there is no
// such database.
type Extensions struct {
	Returns[ExtensionList] `json:"-"`
	DatabaseID             id.DatabaseID `json:"-" path:"id"`
}

// ExtensionList has an entry for each of extension.Names, in their order.
type ExtensionList struct {
	ServerVersion string           `json:"serverVersion"`
	Entries       []ExtensionEntry `json:"entries"`
}

// ExtensionEntry is the state of one extension.
type ExtensionEntry struct {
	Name             extension.Name `json:"name"`
	Available        bool           `json:"available"`                  // the server has it
	Trusted          bool           `json:"trusted"`                    // an owner may install its default version
	DefaultVersion   string         `json:"defaultVersion,omitempty"`   // empty where it is not available
	InstalledVersion string         `json:"installedVersion,omitempty"` // empty where it is not installed
	Schema           string         `json:"schema,omitempty"`           // that it is installed in
}

// Route implements Question.
func (Extensions) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/extensions"} }

// Check implements Question.
func (q Extensions) Check() error { return checkDatabase(q.DatabaseID) }
