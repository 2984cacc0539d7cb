package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
)

// reserving are reservations that nobody advances to the switch. They need no agent that restores.
var reserving = []Scenario{
	{Name: "a reservation can be canceled, and its key is used up", Play: func(s *Stage) {
		ada, made := s.Owner()
		session, file := s.Connects(made.Login()), ada.FinishesBackup(made.ID)
		o := ada.Reserves(made, file, "deploy-1")
		s.That(ada.Reserves(made, file, "deploy-1").ID == o.ID, "the same request makes another one")
		s.Refused(refusal(ada.Reserve(made.ID, file, "deploy-2")), "MANAGED_ROLE_CONFLICT")
		s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
		ada.AddsRole(made, "Reports", "custom") // which it does not keep from being made
		canceled := must(ada.Operations.Cancel(ctx, o.ID))(s).Operation
		s.That(canceled.Status == "canceled", "it is %+v", canceled)
		s.terminal(ada, made, o, file, "deploy-1")
		s.That(session.Alive(), "a session was ended")
		ada.FinishesBackup(made.ID)
	}},
}

// terminal expects that a restore has ended for good.
func (s *Stage) terminal(c *Customer, of Created, o wire.Operation, file backup.Filename, key string) {
	s.Helper()
	s.Refused(refusal(c.Restores.Advance(ctx, o.ID)), "RESTORE_OPERATION_TERMINAL")
	s.Refused(refusal(c.Reserve(of.ID, file, key)), "RESTORE_OPERATION_TERMINAL")
}

// hasNotes expects what a backup of a database holds now.
func (s *Stage) hasNotes(c *Customer, of Created, notes ...string) {
	s.Helper()
	s.holds(c.Downloads(of.ID, c.FinishesBackup(of.ID)), notes...)
}
