package fakeagent

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// SetAccounts implements ports.DatabaseAgent.
func (a agent) SetAccounts(ctx context.Context, list []ports.DatabaseAccount) error {
	return a.s.newerRoute(ctx, Call{Method: "SetAccounts"}, func() error {
		for _, one := range list {
			if d, found := a.s.databases[one.DatabaseID]; found {
				d.account = one.AccountID
			}
		}
		return nil
	})
}

// AccountOf returns whose a database is, as the agent was told; empty where it was not.
func (s *Server) AccountOf(db id.DatabaseID) id.AccountID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil {
		return d.account
	}
	return ""
}
