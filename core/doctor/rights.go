package doctor

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// groupRights are those that groups are given when they are made. Those of an overlay are given more, on what there is, but
// nothing on a public that is not the owner's; to what the owner login makes later, PostgreSQL gives what is said here.
func groupRights(n database.Names) []command.GroupRight {
	return []command.GroupRight{
		{Role: n.ReadGroup, On: command.OnPublic, Privileges: []string{"usage"}},
		{Role: n.WriteGroup, On: command.OnPublic, Privileges: []string{"usage"}},
		{Role: n.ReadGroup, On: command.OnLaterSchemas, Privileges: []string{"usage"}},
		{Role: n.WriteGroup, On: command.OnLaterSchemas, Privileges: []string{"usage"}},
		{Role: n.ReadGroup, On: command.OnLaterTables, Privileges: []string{"select"}},
		{Role: n.WriteGroup, On: command.OnLaterTables, Privileges: []string{"delete", "insert", "select", "update"}},
		{Role: n.ReadGroup, On: command.OnLaterSequences, Privileges: []string{"select"}},
		{Role: n.WriteGroup, On: command.OnLaterSequences, Privileges: []string{"select", "usage"}},
	}
}

// ExamineRights compares the rights inside a database. Its owner may take the groups' rights, and give them more: that is no
// difference, and what is missing is a notice.
func ExamineRights(want *Database, has command.Rights) []Finding {
	l := &comparison{want: want}
	n := database.RoleNames(want.ID, want.Name)
	switch {
	case want.Busy:
		return nil
	case has.Unread != "":
		l.say(RightsUnread, want.Name, "", has.Unread)
		return l.found
	case has.PublicOwner == "":
		l.say(SchemaGiven, "public in "+want.Name, n.Owner, "no such schema")
	case has.PublicOwnerLogin:
		l.differ(SchemaGiven, "public in "+want.Name, n.Owner, has.PublicOwner)
	default:
		l.differ(SchemaOwner, "public in "+want.Name, n.Owner, has.PublicOwner)
	}
	if !want.HasGroups() {
		return l.found
	}
	for _, right := range groupRights(n) {
		if right.On == command.OnPublic && want.RoleModel == database.SingleLogin && has.PublicOwner != n.Owner {
			continue // which is told, and may not have been the owner's to give
		}
		missing := slices.DeleteFunc(slices.Clone(right.Privileges), func(p string) bool {
			return slices.ContainsFunc(has.Groups, func(g command.GroupRight) bool {
				return g.Role == right.Role && g.On == right.On && slices.Contains(g.Privileges, p)
			})
		})
		if len(missing) > 0 {
			l.say(GroupRights, right.Role, strings.Join(missing, ", ")+" on "+string(right.On), "")
		}
	}
	return l.found
}
