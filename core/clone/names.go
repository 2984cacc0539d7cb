package clone

import (
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// Names are the roles of the source that the clone has too, under its own names. Additional roles are not cloned.
func Names(source, clone database.Record) []command.Renaming {
	from, to := database.RoleNames(source.ID, source.Name), database.RoleNames(clone.ID, clone.Name)
	names := []command.Renaming{{From: from.Holder, To: to.Holder}}
	for _, l := range source.RoleModel.Logins() {
		names = append(names, command.Renaming{From: from.Of(l), To: to.Of(l)})
	}
	if source.RoleModel == database.Managed {
		names = append(names, command.Renaming{From: from.ReadGroup, To: to.ReadGroup},
			command.Renaming{From: from.WriteGroup, To: to.WriteGroup})
	}
	return names
}
