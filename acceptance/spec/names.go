package spec

import (
	"slices"
	"strings"
)

var naming = []Scenario{
	{Name: "a name has 3-50 lowercase letters, digits and hyphens, and begins and ends well", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, bad := range []string{
			"", "ab", strings.Repeat("a", 51), "1abc", "-abc", "abc-", "Abc", "a_b_c", "a b c", "abc\n", "äbc", "abc.transaction",
			`abc"; DROP ROLE postgres; --`,
		} {
			_, err := ada.CreateDatabase(NewDatabase{Name: bad, DisplayName: "D"})
			s.Refused(err, "VALIDATION_ERROR", "name")
		}
		s.That(len(ada.SeesAll()) == 0, "something was made all the same")
	}},
	{Name: "the shortest and the longest name work", Play: func(s *Stage) {
		ada := s.Customer("pro")
		long := s.Name(strings.Repeat("l", 38))
		long += strings.Repeat("9", 50-len(long))
		for _, name := range []string{s.Name("a")[:3] + s.Name("b")[2:5], long} {
			s.Connects(ada.CreatesAs(NewDatabase{Name: strings.Replace(name, "-", "q", 1), DisplayName: "D"}).Login())
		}
	}},
	{Name: "reserved names are refused", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, name := range []string{
			"postgres", "template0", "template1", "pgbouncer", "pgherd", "public", "none", "all", "sameuser", "samerole",
			"samegroup", "replication",
		} {
			_, err := ada.CreateDatabase(NewDatabase{Name: name, DisplayName: "D"})
			s.Refused(err, "VALIDATION_ERROR", "name")
		}
	}},
	{Name: "a name that somebody has is taken, for everybody", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		for _, again := range []*Customer{ada, bob} {
			_, err := again.CreateDatabase(NewDatabase{Name: made.Name, DisplayName: "D"})
			s.Refused(err, "VALIDATION_ERROR", "name")
		}
		s.That(len(bob.SeesAll()) == 0, "bob sees %v", bob.SeesAll())
		s.Connects(made.Login())
	}},
	{Name: "two customers who want one name at once: one gets it", Play: func(s *Stage) {
		crowd := []*Customer{s.Customer("pro"), s.Customer("pro"), s.Customer("pro"), s.Customer("pro")}
		ask := NewDatabase{Name: s.Name("wanted"), DisplayName: "D"}
		errs := s.atOnce(len(crowd), func(i int) error {
			_, err := crowd[i].CreateDatabase(ask)
			return err
		})
		made := 0
		for i, err := range errs {
			if err == nil {
				made++
				s.That(len(crowd[i].SeesAll()) == 1, "the winner sees %v", crowd[i].SeesAll())
				continue
			}
			s.Refused(err, "VALIDATION_ERROR", "name")
			s.That(len(crowd[i].SeesAll()) == 0, "a loser sees %v", crowd[i].SeesAll())
		}
		s.That(made == 1, "%d got it", made)
	}},
	{Name: "a name that something else on the server has is taken; that stays as it is, and nothing is left", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		name := s.Name("foreign")
		s.OK(s.Operator.MakeForeign(name))
		_, err := ada.CreateDatabase(NewDatabase{Name: name, DisplayName: "D"})
		s.Refused(err, "VALIDATION_ERROR", "name")
		s.That(len(ada.SeesAll()) == 0, "ada sees %v", ada.SeesAll())
		s.That(!slices.Contains(s.serverObjects(), "login "+name), "a login was left behind")
		ada.Creates("another")
	}},
	{Name: "a display name has 1-64 characters and no control characters", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, bad := range []string{"", "   ", strings.Repeat("ä", 65), "a\x00b", "a\tb", "a\nb"} {
			_, err := ada.CreateDatabase(NewDatabase{Name: s.Name("shop"), DisplayName: bad})
			s.Refused(err, "VALIDATION_ERROR", "displayName")
		}
		made := ada.CreatesAs(NewDatabase{Name: s.Name("shop"), DisplayName: strings.Repeat("ä", 64)})
		s.That(made.DisplayName == strings.Repeat("ä", 64), "it is shown as %q", made.DisplayName)
	}},
	{Name: "a choice that does not exist is refused", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for field, n := range map[string]NewDatabase{
			"roleModel":       {RoleModel: "many"},
			"environment":     {Environment: "prod"},
			"scheduledBackup": {ScheduledBackup: "hourly"},
		} {
			n.Name, n.DisplayName = s.Name("shop"), "D"
			_, err := ada.CreateDatabase(n)
			s.Refused(err, "VALIDATION_ERROR", field)
		}
	}},
}
