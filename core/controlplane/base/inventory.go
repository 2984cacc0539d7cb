package base

import (
	"context"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// AskTime bounds one question, or one command, for which an operator waits.
const AskTime = 30 * time.Second

// Ask asks an agent for which an operator waits, for AskTime at most.
func Ask[R any](ctx context.Context, agent ports.Agent, q command.Asking[R]) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	return ports.Ask(ctx, agent, q)
}

// Inventory asks an agent for all databases that its ledger has.
func Inventory(ctx context.Context, agent ports.Agent) (all []command.InventoryDatabase, err error) {
	for after, more := command.InventoryFromStart, true; more; {
		part, err := Ask(ctx, agent, command.AskInventory{After: after})
		if err != nil {
			return nil, err
		}
		all = append(all, part.Databases...)
		if more = part.More && len(part.Databases) > 0; more {
			after = part.Databases[len(part.Databases)-1].DatabaseID
		}
	}
	return all, nil
}

// InventoryOf is what an agent's ledger has of a database; nil where it has nothing.
func InventoryOf(ctx context.Context, agent ports.Agent, db id.DatabaseID) (*command.InventoryDatabase, error) {
	all, err := Inventory(ctx, agent)
	for _, d := range all {
		if d.DatabaseID == db {
			return &d, err
		}
	}
	return nil, err
}

// Files asks an agent for all files that it keeps for databases.
func Files(ctx context.Context, agent ports.Agent) ([]command.StoredFile, error) {
	return filesIn(ctx, agent, "")
}

// filesIn are the files in a folder, by their paths; empty: all.
func filesIn(ctx context.Context, agent ports.Agent, folder string) (all []command.StoredFile, err error) {
	for after, more := folder, true; more; {
		part, err := Ask(ctx, agent, command.AskFiles{After: after})
		if err != nil {
			return nil, err
		}
		for _, f := range part.Files {
			if after = f.Path; strings.HasPrefix(f.Path, folder) {
				all = append(all, f)
			}
		}
		more = part.More && len(part.Files) > 0 && strings.HasPrefix(after, folder)
	}
	return all, nil
}

// BackupsAt asks an agent which backups of a database it has, whether a record names them or not.
func BackupsAt(ctx context.Context, agent ports.Agent, db id.DatabaseID) ([]backup.Filename, error) {
	all, err := filesIn(ctx, agent, string(db)+"/")
	return doctor.Unrecorded(db, all, nil), err
}
