package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

// Stories in which the database server is out of reach, or its answers are.
var interruptingRoles = []Scenario{
	{Name: "without its agent a setup is refused, blocks the next one, and the same request finishes it", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			ask := NewRole{DisplayName: "Reports", AccessProfile: "read_only", ConnectionLimit: 2, IdempotencyKey: "deploy-1"}
			s.losesAgent()
			s.Refused(refusal(ada.CreateRole(made.ID, ask)), "AGENT_ERROR")
			half := ada.halfMade(made)
			s.That(half.Status == "reserved", "it is %s", half.Status)
			other := NewRole{DisplayName: "Other", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "other"}
			s.Refused(refusal(ada.CreateRole(made.ID, other)), "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, half.RoleID)), "MANAGED_ROLE_CONFLICT")

			s.OK(s.Agent.Start())
			role := ada.AddsRoleAs(made, ask)
			s.That(role.RoleID == half.RoleID && role.Status == "ready" && role.Username == half.Username, "%+v", role)
			s.bothIn(ada.Reveals(made, role).Login())
			ada.AddsRoleAs(made, other)
		}},
	{Name: "a setup that was left reserved is prepared and admitted by hand", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		_, err := ada.CreateRole(made.ID, NewRole{
			DisplayName: "Reports", AccessProfile: "read_write", ConnectionLimit: 2, IdempotencyKey: "deploy-1",
		})
		s.Refused(err, "AGENT_ERROR")
		half := ada.halfMade(made)
		s.Refused(refusal(ada.Roles.Prepare(ctx, made.ID, half.RoleID)), "AGENT_ERROR")
		s.OK(s.Agent.Start())
		for range 2 {
			prepared := must(ada.Roles.Prepare(ctx, made.ID, half.RoleID))(s)
			s.That(prepared.Status == "sql_ready" && prepared.Username == half.Username, "%+v", prepared)
		}
		s.Refused(s.tryOne(ada, made, half, "reveal"), "MANAGED_ROLE_CONFLICT")
		for range 2 {
			admitted := must(ada.Roles.Admit(ctx, made.ID, half.RoleID))(s)
			s.That(admitted.Status == "ready" && admitted.RoleID == half.RoleID, "%+v", admitted)
		}
		s.bothIn(ada.Reveals(made, half).Login())
	}},
	{Name: "a reserved role of which the server never heard is deleted", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		_, err := ada.CreateRole(made.ID, NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "k"})
		s.Refused(err, "AGENT_ERROR")
		half := ada.halfMade(made)
		s.OK(s.Agent.Start())
		ada.Deletes(made, half)
		ada.AddsRole(made, "R", "custom")
	}},
	{Name: "a rotation without the agent is pending, blocks every other, and is finished in the background", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, old := ada.AddsLogin(made, "Reports", "read_only")
			other := ada.AddsRole(made, "Jobs", "read_only")
			s.losesAgent()
			begun := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
			s.That(begun.Status == "pending" && begun.CredentialGeneration == 2, "the change is %+v", begun)
			s.unfinished(ada, made, role, other, begun)

			s.OK(s.Agent.Start())
			s.completes(ada, made, role, begun)
			s.bothOut(old)
			s.That(ada.Rotates(made, role, "rotate-1").OperationID == begun.OperationID, "the request makes another change")
			fresh := ada.Reveals(made, role)
			s.That(fresh.CredentialGeneration == 2, "it was applied again: %+v", fresh.Role)
			s.bothIn(fresh.Login())
		}},
	{Name: "a replay finishes a pending change; a look at it does not", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, old := ada.AddsLogin(made, "Reports", "read_only")
		s.stopsBatch()
		s.losesAgent()
		begun := must(ada.ChangeRole(made.ID, role.RoleID, "revoke", "revoke-1"))(s)
		replayed := must(ada.ReplayChange(made.ID, role.RoleID, begun.OperationID))(s)
		s.That(begun.Status == "pending" && replayed == begun, "%+v, %+v", begun, replayed)
		s.OK(s.Agent.Start())
		for range 3 {
			seen := must(ada.Roles.GetChange(ctx, made.ID, role.RoleID, begun.OperationID))(s)
			s.That(seen == begun, "a look made it %+v", seen)
		}
		done := must(ada.ReplayChange(made.ID, role.RoleID, begun.OperationID))(s)
		s.That(done.Status == "completed" && done.OperationID == begun.OperationID, "%+v", done)
		s.bothOut(old)
	}},
	{Name: "a deletion without the agent is pending in its first phase, and goes on when it is called again", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, login := ada.AddsLogin(made, "Reports", "read_only")
			s.losesAgent()
			begun := must(ada.DeleteRole(made.ID, role.RoleID))(s)
			s.That(begun.Status == "pending" && begun.Phase == "revoke" && begun.OperationID != "", "it is %+v", begun)
			again := must(ada.DeleteRole(made.ID, role.RoleID))(s)
			s.That(again == begun, "it is %+v; it was %+v", again, begun)
			s.That(*ada.FindsRole(made, role).OperationID == begun.OperationID, "the list is %+v", ada.ListsRoles(made))

			s.OK(s.Agent.Start())
			ada.Deletes(made, role)
			s.bothOut(login)
		}},
	{Name: "a removal without the agent is pending in its second phase, and is finished in the background", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role := ada.AddsRole(made, "Reports", "read_only")
			ada.Revokes(made, role)
			s.losesAgent()
			begun := must(ada.DeleteRole(made.ID, role.RoleID))(s)
			s.That(begun == wire.RoleRemoval{RoleID: role.RoleID, Status: "pending", Phase: "remove"}, "it is %+v", begun)
			short := must(ada.Roles.Remove(ctx, made.ID, role.RoleID))(s)
			s.That(short == wire.RoleRemoval{RoleID: role.RoleID, Status: "pending"}, "the short way tells %+v", short)
			s.OK(s.Agent.Start())
			s.Eventually("the role is gone", func() bool { return len(ada.ListsRoles(made)) == 0 })
			ada.Deletes(made, role)
			ada.AddsRole(made, "Reports 2", "custom")
		}},
	{Name: "without its agent no password is shown, for nobody could say whether it is in force", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		before := len(ada.ReadsActivity(made.ID))
		s.losesAgent()
		s.Refused(s.tryOne(ada, made, role, "reveal"), "AGENT_ERROR")
		s.That(len(ada.ReadsActivity(made.ID)) == before, "it stands in the log all the same")
		s.OK(s.Agent.Start())
		ada.Reveals(made, role)
	}},
}

// unfinished fails the story unless a pending change shows in the list, and keeps every other change and the lifecycle away.
func (s *Stage) unfinished(c *Customer, db Created, role, other wire.Role, begun wire.RoleChange) {
	s.Helper()
	shown := c.FindsRole(db, role)
	s.That(shown.Status == "updating" && shown.OperationID != nil && *shown.OperationID == begun.OperationID &&
		shown.CredentialGeneration == 1, "it is listed as %+v", shown)
	_, err := c.CreateRole(db.ID, NewRole{DisplayName: "New", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "new"})
	s.Refused(err, "MANAGED_ROLE_CONFLICT")
	for _, r := range []wire.Role{role, other} {
		for _, kind := range []RoleKind{"rotate", "revoke"} {
			s.Refused(s.tryOne(c, db, r, kind), "MANAGED_ROLE_CONFLICT")
		}
		s.Refused(refusal(c.DeleteRole(db.ID, r.RoleID)), "MANAGED_ROLE_CONFLICT")
	}
	s.Refused(s.tryOne(c, db, role, "reveal"), "MANAGED_ROLE_CONFLICT")
	if !s.legacy {
		s.Refused(refusal(c.RenameRole(db.ID, role.RoleID, "Renamed")), "MANAGED_ROLE_CONFLICT")
		s.Refused(refusal(c.RotateLogin(db.ID, "runtime", "runtime-1")), "MANAGED_ROLE_CONFLICT")
	}
	for _, action := range []database.Event{"stop", "restart"} {
		s.Refused(refusal(c.SetLifecycle(db.ID, action)), "DATABASE_STATE_CONFLICT")
	}
}

// completes waits until a change is done, without going on with it.
func (s *Stage) completes(c *Customer, db Created, r wire.Role, begun wire.RoleChange) {
	s.Helper()
	want := begun
	want.Status = "completed"
	s.Eventually(string(begun.Kind)+" is completed", func() bool {
		seen := must(c.Roles.GetChange(ctx, db.ID, r.RoleID, begun.OperationID))(s)
		s.That(seen == begun || seen == want, "the change is %+v; it was %+v", seen, begun)
		return seen == want
	})
}
