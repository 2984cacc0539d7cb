package spec

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

// refusals are calls with one value each that its rule in core refuses, by the field that is to blame.
func refusals(s *Stage, c *Customer, db Created, r wire.Role) map[string]error {
	errs := map[string]error{}
	for field, change := range map[string]func(*NewDatabase){
		"name":            func(n *NewDatabase) { n.Name = "abc.transaction" },
		"displayName":     func(n *NewDatabase) { n.DisplayName = "a\tb" },
		"roleModel":       func(n *NewDatabase) { n.RoleModel = "many" },
		"environment":     func(n *NewDatabase) { n.Environment = "prod" },
		"scheduledBackup": func(n *NewDatabase) { n.ScheduledBackup = "hourly" },
		"postgresVersion": func(n *NewDatabase) { n.PostgresVersion = new(15) },
	} {
		n := NewDatabase{Name: s.Name("shop"), DisplayName: "D"}
		change(&n)
		_, errs[field+" of a database"] = c.CreateDatabase(n)
	}
	for field, change := range map[string]func(*NewRole){
		"displayName":     func(n *NewRole) { n.DisplayName = "a\u202eb" },
		"accessProfile":   func(n *NewRole) { n.AccessProfile = "owner" },
		"connectionLimit": func(n *NewRole) { n.ConnectionLimit = 0 },
	} {
		n := NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "bad"}
		change(&n)
		_, errs[field+" of a role"] = c.CreateRole(db.ID, n)
	}
	_, errs["environment"] = c.SetEnvironment(db.ID, new(database.Environment("prod")))
	_, errs["action"] = c.SetLifecycle(db.ID, "created")
	_, errs["cidr"] = c.AddToAllowlist(db.ID, "192.0.2.1/24", "")
	_, errs["description"] = c.AddToAllowlist(db.ID, "192.0.3.0/24", strings.Repeat("n", 201))
	_, errs["displayName"] = c.RenameRole(db.ID, r.RoleID, "   ")
	_, errs["kind"] = c.ChangeRole(db.ID, r.RoleID, "expire", "k")
	return errs
}

var naming = []Scenario{
	{Name: "a value that its rule refuses is told by the name of its field, and nothing is done", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "custom")
		open := s.bothIn(login)
		for what, err := range refusals(s, ada, made, role) {
			s.Log(what)
			s.Refused(err, "VALIDATION_ERROR", strings.Fields(what)[0])
		}
		s.Refused(refusal(ada.CreateWebhook("https://127.0.0.1/", "")), "INVALID_WEBHOOK_ENDPOINT", "url")
		s.Refused(refusal(ada.DownloadBackup(made.ID, "../../etc/passwd")), "INVALID_BACKUP_FILENAME")
		s.Refused(ada.Backups.Delete(ctx, made.ID, "20261332_000000.sql.gz"), "INVALID_BACKUP_FILENAME")
		s.That(len(ada.SeesAll()) == 1 && len(ada.ListsRoles(made)) == 1 && len(ada.ListsWebhooks()) == 0, "something was made")
		s.open(open...)
		s.That(ada.AddsRoleAs(made, NewRole{
			DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "bad",
		}).Ordinal == 2, "a refused request used an ordinal up")
	}},
	{Name: "the shortest and the longest name work", Play: func(s *Stage) {
		ada := s.Customer("pro")
		long := s.Name(strings.Repeat("l", 38))
		long += strings.Repeat("9", 50-len(long))
		for _, name := range []string{s.Name("a")[:3] + s.Name("b")[2:5], long} {
			s.Connects(ada.CreatesAs(NewDatabase{Name: strings.Replace(name, "-", "q", 1), DisplayName: "D"}).Login())
		}
	}},
	{Name: "a name that somebody has is taken, for everybody", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		for _, again := range []*Customer{ada, bob} {
			s.Refused(refusal(again.CreateDatabase(NewDatabase{Name: made.Name, DisplayName: "D"})), "VALIDATION_ERROR", "name")
		}
		s.That(len(bob.SeesAll()) == 0, "bob sees %v", bob.SeesAll())
		s.Connects(made.Login())
	}},
	{Name: "a name that something else on the server has is taken; that stays as it is, and nothing is left", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		name := s.Name("foreign")
		s.OK(s.Operator.MakeForeign(name))
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: name, DisplayName: "D"})), "VALIDATION_ERROR", "name")
		s.That(len(ada.SeesAll()) == 0, "ada sees %v", ada.SeesAll())
		s.That(!slices.Contains(s.serverObjects(), "login "+name), "a login was left behind")
		ada.Creates("another")
	}},
}
