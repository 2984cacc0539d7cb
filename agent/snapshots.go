package agent

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
)

func (a *Agent) keepSnapshot(
	ctx context.Context, q command.KeepSnapshot, size int64, body io.ReadCloser,
) (none command.None, err error) {
	err = a.files.KeepSnapshot(ctx, q.InstallationID, q.Name, size, body)
	switch {
	case errors.Is(err, store.ErrSnapshotExists):
		err = command.Refuse(command.ReasonConflict, "there is a snapshot %s already", q.Name)
	case errors.Is(err, store.ErrBrokeOff):
		err = command.Refuse(command.ReasonInvalid, "fewer bytes came than the snapshot has")
	}
	return none, err
}

func (a *Agent) snapshots(ctx context.Context, _ command.AskSnapshots) (s command.Snapshots, err error) {
	s.Snapshots, err = a.files.Snapshots(ctx)
	return s, err
}

func (a *Agent) openSnapshot(ctx context.Context, q command.OpenSnapshot) (io.ReadCloser, int64, error) {
	return a.files.OpenSnapshot(ctx, q.InstallationID, q.Name)
}
