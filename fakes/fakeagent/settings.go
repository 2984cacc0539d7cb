package fakeagent

import (
	"slices"

	"github.com/pgherd/pgherd/core/command"
)

// configure does at once what a real agent leaves to running transactions: the fake has none.
func (d *databaseState) configure(c command.Configure) command.Configured {
	d.settings = c
	if c.Closed {
		clear(d.sessions)
	}
	return command.Configured{DatabaseOID: d.oid}
}

func (d *databaseState) settingsInForce() command.SettingsInForce {
	in := command.SettingsInForce{
		DatabaseOID: d.oid, Generation: d.settings.Generation, RoleOverrides: append([]command.RoleOverride{}, d.overrides...),
	}
	if t := d.settings.Timeouts; t != nil {
		in.StatementMs, in.LockMs, in.IdleInTransactionMs = t.StatementMs, t.LockMs, t.IdleInTransactionMs
	}
	return in
}

// OverrideSetting has a login of a customer's set something for itself. It reports whether there is such a login.
func (s *Server) OverrideSetting(o command.RoleOverride) bool {
	return s.handle(o.Role, func(d *databaseState, _ *login) {
		d.overrides = slices.DeleteFunc(d.overrides, func(known command.RoleOverride) bool {
			return known.Role == o.Role && known.Setting == o.Setting
		})
		d.overrides = append(d.overrides, o)
	})
}

// Configured is what the last Configure of a database wanted.
func (s *Server) Configured(name string) command.Configure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.named(name); d != nil {
		return d.settings
	}
	return command.Configure{}
}
