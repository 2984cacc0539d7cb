package base

import (
	"context"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// eraseTries is how often a file is tried to be removed while the server hears of further operations on the database.
const eraseTries = 3

// EraseBackup removes the file of a backup from a server; one that is not there is no error. brake.Held where the metadata are
// behind. The other errors are those of ports.Agent.
func (p *Base) EraseBackup(ctx context.Context, at id.ServerID, db id.DatabaseID, filename backup.Filename) error {
	agent, err := p.AgentOf(ctx, at)
	if err != nil {
		return err
	}
	for range eraseTries {
		if err = p.InStep(ctx, at); err == nil {
			_, err = ports.Ask(ctx, agent, command.DeleteBackup{DatabaseID: db, Filename: filename})
		}
		if !command.RefusedFor(err, command.ReasonBehind) {
			break
		}
	}
	return err
}
