package uploads

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

func (u *Uploads) registerRounds() {
	rounds.RegisterServers(u.base.Rounds, rounds.ServerTask[ports.DoomedUpload]{
		Name: "ended uploads", Every: base.RoundEvery, Find: u.doomed,
		Of:  func(d ports.DoomedUpload) (id.ServerID, id.AccountID) { return d.ServerID, d.AccountID },
		Key: func(d ports.DoomedUpload) string { return string(d.ID) },
		Do: func(ctx context.Context, _ time.Time, d ports.DoomedUpload) error {
			return u.base.UnlessSettled(ctx, "upload.not_ended", d.DatabaseID, u.end(ctx, d.Upload, d.ServerID))
		},
	})
}

// doomed lists the uploads that have expired or were restored from, or whose restore has ended otherwise.
func (u *Uploads) doomed(ctx context.Context, now time.Time) ([]ports.DoomedUpload, error) {
	return ports.Read(ctx, u.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.DoomedUpload, error) {
		return tx.Uploads().Doomed(ctx, now, base.RoundMost)
	})
}

// end has the server remove the file of an upload, and then removes its record. It can be done again, and without a record: what
// announced it may have come late to the server. Before that nobody may complete it any more, and where it was completed its
// restore has ended. ErrSettled: it was completed meanwhile.
func (u *Uploads) end(ctx context.Context, ending upload.Upload, on id.ServerID) error {
	err := u.base.UpdateDatabase(ctx, ending.DatabaseID, func(ctx context.Context, tx ports.Tx, _ database.Record) error {
		found, err := tx.Uploads().Get(ctx, ending.DatabaseID, ending.ID)
		switch {
		case err != nil:
			return err
		case found.OperationID == "":
			return tx.Uploads().Save(ctx, found.Ended())
		case found.OperationID != ending.OperationID:
			return base.ErrSettled
		}
		return nil
	})
	if err = base.NotFound(err, nil); err != nil {
		return err
	}
	agent, err := u.base.AgentOf(ctx, on)
	if err != nil {
		return err
	}
	if _, err := ports.Ask(ctx, agent, command.DropUpload{DatabaseID: ending.DatabaseID, UploadID: ending.ID}); err != nil {
		return err
	}
	return u.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Uploads().Remove(ctx, ending.ID) })
}
