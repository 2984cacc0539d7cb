package fakeagent

import (
	"maps"
	"slices"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// ofNoOperation are the commands whose generations are asked for.
func ofNoOperation(db id.DatabaseID) []command.Command {
	return []command.Command{command.SetAllowlist{DatabaseID: db}, command.Configure{DatabaseID: db}}
}

func (s *Server) applied(q command.AskApplied) command.Applied {
	part := command.Applied{Databases: []command.AppliedIn{}}
	for _, db := range slices.Sorted(maps.Keys(s.databases)) {
		if db <= q.After || !s.inService(db) {
			continue
		}
		if len(part.Databases) == command.AppliedAtOnce {
			part.More = true
			break
		}
		one := command.AppliedIn{DatabaseID: db, Generations: map[command.Kind]int64{}}
		for _, c := range ofNoOperation(db) {
			if g := s.ledger.generationsOf(c); g.Applied > 0 {
				one.Generations[c.About().Kind] = g.Applied
			}
		}
		part.Databases = append(part.Databases, one)
	}
	return part
}

// Rewind restores a database's settings and allowlist from a backup of the server that was made before they were first set.
func (s *Server) Rewind(db id.DatabaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.databases[db].settings, s.databases[db].networks = command.Configure{}, nil
	for _, c := range ofNoOperation(db) {
		about := c.About()
		delete(s.ledger.generations, generationKey{about.Kind, about.Resource})
		maps.DeleteFunc(s.ledger.commands, func(key commandKey, _ *commandState) bool {
			return key.operation == "" && key.step == command.Step(c) && key.resource == about.Resource
		})
	}
}
