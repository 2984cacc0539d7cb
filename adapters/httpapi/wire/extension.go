package wire

import "github.com/pgherd/pgherd/core/extension"

// Extension is an extension of the catalog, as a database and its server have it.
type Extension struct {
	Name      extension.Name `json:"name"`
	Available bool           `json:"available" description:"the database server has it"`
	Trusted   bool           `json:"trusted" description:"the owner of a database may install it"`
	// RestoreQualified is of the default version, on the database's server.
	RestoreQualified bool    `json:"restoreQualified" description:"a backup with it was proven to be restorable"`
	DefaultVersion   string  `json:"defaultVersion" description:"of the server; empty where it is not available" example:"1.6"`
	InstalledVersion *string `json:"installedVersion" description:"null where it is not installed" example:"1.6"`
	Schema           *string `json:"schema" description:"in which it is installed" example:"public"`
}

// ChangeExtension installs an extension, or upgrades it to the supported version.
type ChangeExtension struct {
	Extension extension.Name   `json:"extension"`
	Kind      extension.Change `json:"kind"`
}

// ExtensionOperation is an operation on an extension. IdempotencyKey stands for the key of its request, which is never shown.
type ExtensionOperation struct {
	Operation
	IdempotencyKey string `json:"idempotencyKey" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}
