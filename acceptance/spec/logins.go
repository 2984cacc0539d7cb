package spec

import (
	"crypto/md5"
	"encoding/hex"
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

var keepingLogins = []Scenario{
	{Name: "a managed database has three logins, told without passwords", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.AddsRole(made, "Reports", "custom")
		id := compact(made.ID)
		list := ada.ListsLogins(made)
		s.That(slices.Equal(list, []wire.Login{
			{Login: "owner", Username: made.Name, ConnectionLimit: 60, CredentialGeneration: 1},
			{Login: "runtime", Username: "pgh_" + id + "_rt", ConnectionLimit: 60, CredentialGeneration: 1},
			{Login: "readonly", Username: "pgh_" + id + "_ro", ConnectionLimit: 60, CredentialGeneration: 1},
		}), "the logins are %+v", list)
	}},
	{Name: "runtime and readonly get in with what is revealed; the owner's password is told by nobody", Play: func(s *Stage) {
		ada, made := s.Owner()
		for _, name := range []database.Login{database.RuntimeLogin, database.ReadonlyLogin} {
			before := len(ada.ReadsActivity(made.ID))
			shown := ada.RevealsLogin(made, name)
			s.That(shown.Login.Login == name && shown.Host == made.Host && shown.Port == made.Port && shown.Database == made.Name &&
				shown.TLSRequired && len(shown.Password) >= 32, "%+v", shown.Login)
			s.bothIn(shown.LogIn())
			log := ada.ReadsActivity(made.ID)
			s.That(len(log) == before+1 && s.looks(ada, log, "login", string(name)) == 1, "the log is %+v", log)
			s.noSecretIn(log, shown.Password)
		}
		s.Refused(refusal(ada.Logins.Reveal(ctx, made.ID, "owner")), "ROLE_NOT_FOUND")
	}},
	{Name: "runtime writes, readonly reads, and neither makes anything", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.stocks(made, "public")
		for name, profile := range map[database.Login]string{"runtime": "read_write", "readonly": "read_only"} {
			login := ada.RevealsLogin(made, name).LogIn()
			s.may(login, profile, "public")
			for _, statement := range []string{
				"CREATE TABLE public.mine (n int)", "CREATE TEMPORARY TABLE scratch (n int)", "CREATE SCHEMA x",
			} {
				_, err := s.SQL.Run(login, statement)
				s.That(s.SQL.State(err) == "42501", "%s: %s: %v", name, statement, err)
			}
		}
	}},
	{Name: "a rotation kills a login's old password and its connections, and nobody else's", Play: func(s *Stage) {
		ada, made := s.Owner()
		readonly := s.bothIn(ada.RevealsLogin(made, "readonly").LogIn())
		old := ada.RevealsLogin(made, "runtime").LogIn()
		sessions := s.bothIn(old)
		done := ada.RotatesLogin(made, "runtime", "runtime-1")
		s.That(done.Kind == "rotate" && done.Login == "runtime" && done.CredentialGeneration == 2 && done.Password == "", "%+v", done)
		s.closed(sessions...)
		s.bothOut(old)
		s.open(readonly...)
		fresh := ada.RevealsLogin(made, "runtime")
		s.That(fresh.CredentialGeneration == 2, "%+v", fresh.Login)
		s.bothIn(fresh.LogIn())
		again := ada.RotatesLogin(made, "runtime", "runtime-1")
		s.That(again == done && ada.RevealsLogin(made, "runtime") == fresh, "it was applied again")
		s.Refused(refusal(ada.RotateLogin(made.ID, "readonly", "runtime-1")), "MANAGED_ROLE_CONFLICT")
	}},
	{Name: "the owner's new password is told once, by the answer to the rotation", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
		made := ada.CreatesAs(ask)
		role := ada.AddsRole(made, "Reports", "read_only")
		sessions := s.bothIn(made.Login())
		others := s.bothIn(ada.Reveals(made, role).Login())
		done := ada.RotatesLogin(made, "owner", "owner-1")
		s.That(done.Login == "owner" && len(done.Password) >= 32 && done.Password != made.Password, "%+v", done.Status)
		s.closed(sessions...)
		s.bothOut(made.Login())
		fresh := made.Login()
		fresh.Password = done.Password
		s.open(s.bothIn(fresh)...)
		s.open(others...)

		again := ada.RotatesLogin(made, "owner", "owner-1")
		s.That(again.OperationID == done.OperationID && again.Password == "", "the replay is told a password, or is another change")
		replay := ada.CreatesAs(ask)
		s.That(replay.Password == "" && replay.ConnectionString == "", "the replay of the creation tells a password")
		s.noSecretIn(ada.ReadsActivity(made.ID), done.Password)
		ada.AddsRole(made, "Next", "read_write")
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a login that there is not cannot be rotated", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.Refused(refusal(ada.Logins.Reveal(ctx, made.ID, "root")), "ROLE_NOT_FOUND")
		s.Refused(refusal(ada.RotateLogin(made.ID, "root", "k")), "ROLE_NOT_FOUND")
	}},
	{Name: "the owner of a database with a single login gets another password, once, without opting in", Play: func(s *Stage) {
		ada := s.Customer("pro")
		single := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
		sessions := s.bothIn(single.Login())
		for _, login := range []database.Login{"runtime", "readonly"} {
			s.Refused(refusal(ada.RotateLogin(single.ID, login, "k")), "ROLE_NOT_FOUND")
		}
		s.Refused(refusal(ada.Logins.Reveal(ctx, single.ID, "owner")), "ROLE_NOT_FOUND")
		done := ada.RotatesLogin(single, "owner", "owner-1")
		s.closed(sessions...)
		s.bothOut(single.Login())
		fresh := single.Login()
		fresh.Password = done.Password
		s.bothIn(fresh)
		again := ada.RotatesLogin(single, "owner", "owner-1")
		s.That(again.OperationID == done.OperationID && again.Password == "", "the replay is told a password, or is another change")
		s.That(ada.ListsLogins(single)[0].CredentialGeneration == 2, "it was applied again")
		s.noSecretIn(ada.ReadsActivity(single.ID), done.Password)
	}},
	{Name: "an owner with a single login who has stored a password as md5 gets in again by its rotation", Play: func(s *Stage) {
		ada := s.Customer("pro")
		single := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
		own := single.Login()
		own.Password = "chosen by the owner"
		sum := md5.Sum([]byte(own.Password + own.Username))
		s.OK(s.OnServer.SetPassword(single.Login(), "md5"+hex.EncodeToString(sum[:])))
		s.bothOut(own)
		s.bothOut(single.Login())
		fresh := single.Login()
		fresh.Password = ada.RotatesLogin(single, "owner", "owner-1").Password
		s.bothOut(own)
		s.bothIn(fresh)
	}},
	{Name: "a rotation without the agent is pending and finished in the background; the owner's password is then told", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			s.losesAgent()
			begun := must(ada.RotateLogin(made.ID, "owner", "owner-1"))(s)
			s.That(begun.Status == "pending" && begun.Password == "", "it is %s", begun.Status)
			s.OK(s.Agent.Start())
			s.Eventually("the old password is dead", func() bool { return ada.ListsLogins(made)[0].CredentialGeneration == 2 })
			s.bothOut(made.Login())
			done := ada.RotatesLogin(made, "owner", "owner-1")
			s.That(done.OperationID == begun.OperationID && done.Password != "", "%+v", done.Status)
			fresh := made.Login()
			fresh.Password = done.Password
			s.bothIn(fresh)
		}},
}

// ListsLogins returns the logins that a database came with.
func (c *Customer) ListsLogins(db Created) []wire.Login {
	c.stage.Helper()
	return must(c.Logins.List(ctx, db.ID))(c.stage)
}

// RevealsLogin returns a managed login with its password.
func (c *Customer) RevealsLogin(db Created, login database.Login) LoginCredential {
	c.stage.Helper()
	return LoginCredential{must(c.Logins.Reveal(ctx, db.ID, login))(c.stage)}
}

// RotatesLogin gives a managed login a new password, and sees it done.
func (c *Customer) RotatesLogin(db Created, login database.Login, key string) wire.LoginRotation {
	c.stage.Helper()
	done := must(c.RotateLogin(db.ID, login, key))(c.stage)
	c.stage.That(done.Status == "completed", "the rotation is %s", done.Status)
	return done
}
