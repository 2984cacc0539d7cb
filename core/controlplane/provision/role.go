package provision

import "github.com/pgherd/pgherd/core/command"

// Role are the commands that make an additional role on a server that does not have it.
type Role struct {
	Username string
	Prepare  command.Returning[command.None]
	Admit    *command.AdmitRole // nil: it cannot log in
}
