package fakeagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/ports"
)

type snapshotKey struct {
	installation id.InstallationID
	name         snapshot.Name
}

// keepSnapshot keeps what comes, and removes what that supersedes.
func (a agent) keepSnapshot(
	ctx context.Context, q command.KeepSnapshot, size int64, body io.Reader,
) (json.RawMessage, error) {
	content, err := io.ReadAll(io.LimitReader(body, size))
	if err != nil {
		return nil, err
	}
	return a.s.encoded(ctx, callOf(q), func() (any, error) {
		key := snapshotKey{q.InstallationID, q.Name}
		if err := cmp.Or(q.Check(), a.s.reaches()); err != nil {
			return nil, err
		}
		switch {
		case int64(len(content)) != size:
			return nil, command.Refuse(command.ReasonInvalid, "fewer bytes came than the snapshot has")
		case a.s.snapshots[key] != nil:
			return nil, command.Refuse(command.ReasonConflict, "there is a snapshot %s already", q.Name)
		}
		a.s.snapshots[key] = content
		var names []snapshot.Name
		for kept := range a.s.snapshots {
			if kept.installation == q.InstallationID {
				names = append(names, kept.name)
			}
		}
		for _, name := range snapshot.Superseded(names) {
			delete(a.s.snapshots, snapshotKey{q.InstallationID, name})
		}
		return command.None{}, nil
	})
}

func (s *Server) keptSnapshots() (any, error) {
	var list []command.Snapshot
	for key, content := range s.snapshots {
		list = append(list, command.Snapshot{InstallationID: key.installation, Name: key.name, Bytes: int64(len(content))})
	}
	slices.SortFunc(list, func(a, b command.Snapshot) int {
		return cmp.Or(cmp.Compare(a.InstallationID, b.InstallationID), cmp.Compare(a.Name, b.Name))
	})
	return command.Snapshots{Snapshots: list}, s.reaches()
}

func (s *Server) openSnapshot(ctx context.Context, q command.OpenSnapshot) (ports.File, error) {
	if err := cmp.Or(q.Check(), s.reaches()); err != nil {
		return ports.File{}, err
	}
	content := s.snapshots[snapshotKey{q.InstallationID, q.Name}]
	if content == nil {
		return ports.File{}, command.Refuse(command.ReasonNotFound, "there is no snapshot %s", q.Name)
	}
	return ports.File{Body: &download{ctx: ctx, content: bytes.NewReader(content)}, Size: int64(len(content))}, nil
}
