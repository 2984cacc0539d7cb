package spec

import (
	"net/url"
	"strconv"
	"strings"
)

var creating = []Scenario{
	{Name: "a customer creates a database and an application connects with what the answer says", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.CreatesAs(NewDatabase{Name: s.Name("orders"), DisplayName: "  Orders of 2026  "})

		s.That(made.Status == "active", "it is %s", made.Status)
		s.That(made.DisplayName == "Orders of 2026", "it is shown as %q", made.DisplayName)
		s.That(made.Database.Database == made.Name && made.Username == made.Name,
			"database %s, login %s; want both to be %s", made.Database.Database, made.Username, made.Name)
		s.That(len(made.Password) >= 32, "the password has %d characters", len(made.Password))
		s.promisesTLS(made)
		s.Connects(made.Login())
	}},
	{Name: "the transaction-pooled entry lets the same login in", Play: func(s *Stage) {
		made := s.Customer("pro").Creates("orders")
		entry := made.Login()
		entry.Database += ".transaction"
		s.Connects(entry)
	}},
	{Name: "a single-login database has its owner login and no other", Play: func(s *Stage) {
		made := s.Customer("pro").CreatesAs(NewDatabase{Name: s.Name("legacy"), DisplayName: "L", RoleModel: "single_login"})
		s.Connects(made.Login())
		s.That(s.loginsOf(made) == 1, "%d logins were made", s.loginsOf(made))

		managed := s.Customer("pro").Creates("managed")
		s.That(s.loginsOf(managed) == 3, "%d logins were made for a managed database; want owner, runtime, readonly",
			s.loginsOf(managed))
	}},
	{Name: "only the right password of this very database gets in", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")

		wrong := one.Login()
		wrong.Password = strings.Repeat("x", len(wrong.Password))
		s.ShutOut(wrong)
		crossed := other.Login()
		crossed.Database = one.Name
		s.ShutOut(crossed)
		for _, inner := range []string{"postgres", "template1", "pgherd_maintenance", "pgbouncer"} {
			elsewhere := one.Login()
			elsewhere.Database = inner
			s.ShutOut(elsewhere)
		}
	}},
	{Name: "a password is told once", Play: func(s *Stage) {
		ada, made := s.Owner()
		seen := ada.Sees(made.ID)
		seen.SizeBytes = made.SizeBytes // refreshed by the look
		s.That(seen == made.Database, "it is shown as\n%+v\nand was made as\n%+v", seen, made.Database)
	}},
	{Name: "the choices of a creation are kept", Play: func(s *Stage) {
		ada := s.Customer("business")
		made := ada.CreatesAs(NewDatabase{Name: s.Name("shop"), DisplayName: "Shop", Environment: "staging"})
		s.That(made.Environment != nil && *made.Environment == "staging", "its environment is %v", made.Environment)
		plain := ada.Creates("plain")
		s.That(plain.Environment == nil, "an environment came from nowhere: %v", plain.Environment)
	}},
	{Name: "the size of a database is known and grows with its content", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.Eventually("an empty database takes more than a MiB", func() bool { // a busy agent says it late
			return ada.Sees(made.ID).SizeBytes > 1<<20
		})
	}},
}

// promisesTLS checks the connection string: a PostgreSQL URL with everything in it, and sslmode=verify-full.
func (s *Stage) promisesTLS(made Created) {
	s.Helper()
	u := must(url.Parse(made.ConnectionString))(s)
	password, _ := u.User.Password()
	s.That(u.Scheme == "postgresql" && u.Hostname() == made.Host && u.Port() == strconv.Itoa(made.Port) &&
		u.Path == "/"+made.Name && u.User.Username() == made.Username && password == made.Password &&
		u.RawQuery == "sslmode=verify-full", "the connection string is %s", u.Redacted())
}

// loginsOf counts the logins on the server that belong to a database.
func (s *Stage) loginsOf(made Created) (n int) {
	s.Helper()
	objects := must(s.Operator.ServerObjects())(s)
	id := compact(made.ID)
	for _, o := range objects {
		if o == "login "+made.Name || o == "login pgh_"+id+"_rt" || o == "login pgh_"+id+"_ro" {
			n++
		}
	}
	return n
}

func compact[T ~string](id T) string { return strings.ReplaceAll(string(id), "-", "") }
