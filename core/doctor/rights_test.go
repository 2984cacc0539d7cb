package doctor

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// insides are what may stand inside the healthy database.
var insides = []struct {
	what  string
	do    func(*Database, *command.Rights)
	codes []Code
}{
	{"all that was given", func(*Database, *command.Rights) {}, nil},
	{"more than was given", func(_ *Database, has *command.Rights) {
		has.Groups[0].Privileges = append(has.Groups[0].Privileges, "create")
		has.Groups = append(has.Groups, command.GroupRight{Role: "somebody", On: command.OnPublic, Privileges: []string{"create"}})
	}, nil},
	{"a right less", func(_ *Database, has *command.Rights) {
		has.Groups[5].Privileges = []string{"insert", "select", "update"}
	}, []Code{GroupRights}},
	{"rights of the other group", func(_ *Database, has *command.Rights) {
		has.Groups[0].Role = names.WriteGroup
	}, []Code{GroupRights}},
	{"rights on something else", func(_ *Database, has *command.Rights) {
		has.Groups[6].On = command.OnPublic
	}, []Code{GroupRights}},
	{"no schema", func(_ *Database, has *command.Rights) {
		has.PublicOwner, has.PublicOwnerLogin = "", false
	}, []Code{SchemaGiven}},
	{"another login's schema", func(_ *Database, has *command.Rights) { has.PublicOwner = names.Runtime }, []Code{SchemaGiven}},
	{"a schema that was never given", func(_ *Database, has *command.Rights) {
		has.PublicOwner, has.PublicOwnerLogin, has.Groups = "pg_database_owner", false, nil
	}, []Code{SchemaOwner, GroupRights}},
	{"nothing that is known", func(_ *Database, has *command.Rights) {
		*has = command.Rights{Unread: "somebody's lock is in the way"}
	}, []Code{RightsUnread}},
	{"an overlay's", func(want *Database, has *command.Rights) {
		want.RoleModel, want.OverlayStatus = database.SingleLogin, database.OverlayActive
		has.Groups = has.Groups[:7]
	}, []Code{GroupRights}},
	{"an overlay's, where public is another's", func(want *Database, has *command.Rights) {
		want.RoleModel, want.OverlayStatus = database.SingleLogin, database.OverlayActive
		has.PublicOwner, has.Groups = "other", has.Groups[2:]
	}, []Code{SchemaGiven}},
	{"an overlay's, on the owner's public", func(want *Database, has *command.Rights) {
		want.RoleModel, want.OverlayStatus = database.SingleLogin, database.OverlayActive
		has.Groups = has.Groups[2:]
	}, []Code{GroupRights}},
	{"an overlay's that is unfinished", func(want *Database, has *command.Rights) {
		want.RoleModel, want.OverlayStatus = database.SingleLogin, database.OverlayReserved
		has.Groups = has.Groups[:7]
	}, nil},
	{"no groups", func(want *Database, has *command.Rights) {
		want.RoleModel, has.Groups = database.SingleLogin, nil
	}, nil},
	{"the schema of a single login", func(want *Database, has *command.Rights) {
		want.RoleModel, has.PublicOwner, has.PublicOwnerLogin = database.SingleLogin, "postgres", false
	}, []Code{SchemaOwner}},
	{"work under way", func(want *Database, has *command.Rights) { want.Busy, has.Groups = true, nil }, nil},
}

func TestExamineRights(t *testing.T) {
	for _, c := range insides {
		t.Run(c.what, func(t *testing.T) {
			want, _ := healthy()
			has := command.Rights{PublicOwner: names.Owner, PublicOwnerLogin: true, Groups: groupRights(names)}
			c.do(want, &has)
			found := ExamineRights(want, has)
			wantCodes(t, found, c.codes...)
			for _, f := range found {
				if f.Code.Notice() == (f.Code == SchemaOwner) {
					t.Errorf("%s is a notice: %t", f.Code, f.Code.Notice())
				}
			}
		})
	}
}

func rightsCodes() (all []Code) {
	for _, c := range insides {
		all = append(all, c.codes...)
	}
	return slices.Compact(all)
}
