package agentd

import (
	"os/user"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Who runs PgBouncer is said in one way, and is said where the agent is root.
func TestWhoReadsThePoolersFiles(t *testing.T) {
	me := check.Must(user.Current())(t)
	mine := check.Must(user.LookupGroupId(me.Gid))(t)
	for what, c := range map[string]struct {
		user, group string
		root        bool
		wrong       string // what the error names; empty where there is none
		groupReads  bool
	}{
		"the agent's own user": {},
		"another user":         {user: "daemon", root: true},
		"a group":              {group: mine.Name, groupReads: true},
		"root alone":           {root: true, wrong: "--pooler-user"},
		"root by name":         {user: "root", root: true, wrong: "--pooler-user"},
		"root and a group":     {root: true, group: mine.Name, wrong: "--pooler-user"},
		"both":                 {user: me.Username, group: mine.Name, root: true, wrong: "--pooler-group"},
		"an unknown user":      {user: "no such user", root: true, wrong: "--pooler-user"},
		"an unknown group":     {group: "no such group", wrong: "--pooler-group"},
		"a group of others":    {group: foreignGroup(t), wrong: "usermod"},
	} {
		s := Settings{PoolerUser: c.user, PoolerGroup: c.group}
		owner, err := s.poolerOwner(c.root)
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", what, err)
		}
		if (owner != nil && owner.Group) != c.groupReads {
			t.Errorf("%s: %+v", what, owner)
		}
	}
}

// foreignGroup is a group that the caller is not of.
func foreignGroup(t *testing.T) string {
	t.Helper()
	me := check.Must(user.Current())(t)
	mine := strings.Join(check.Must(me.GroupIds())(t), " ")
	for _, name := range []string{"nogroup", "nobody", "daemon", "bin", "mail"} {
		if g, err := user.LookupGroup(name); err == nil && !strings.Contains(" "+mine+" ", " "+g.Gid+" ") {
			return name
		}
	}
	t.Fatal("the caller is of every group that was tried")
	return ""
}
