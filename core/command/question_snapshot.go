package command

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
)

// KeepSnapshot has the agent keep a snapshot of the metadata where it keeps backups: the bytes that come with it, see
// ports.Agent.Send. What it supersedes of the same installation is removed. The answer comes when it is there whole, and safe.
//
// ReasonConflict: there is one of that name. ReasonStorageFull: there is no room for it. ReasonStorageAway: where backups are
// kept does not answer. ReasonInvalid: other bytes came than were announced.
type KeepSnapshot struct {
	Returns[None]  `json:"-"`
	InstallationID id.InstallationID `json:"-" path:"installation"`
	Name           snapshot.Name     `json:"-" path:"name"`
}

// Route implements Question.
func (KeepSnapshot) Route() Route {
	return Route{Method: "PATCH", Path: "/v1/snapshots/{installation}/{name}"}
}

// Check implements Question.
func (q KeepSnapshot) Check() error { return checkSnapshot(q.InstallationID, q.Name) }

// AskSnapshots asks which snapshots of the metadata are kept, of whichever installations. ReasonStorageAway: where backups are
// kept does not answer.
type AskSnapshots struct {
	Returns[Snapshots] `json:"-"`
}

// Snapshots are all that are kept whole, by installation and by name.
type Snapshots struct {
	Snapshots []Snapshot `json:"snapshots"`
}

// Snapshot is one that is kept.
type Snapshot struct {
	InstallationID id.InstallationID `json:"installationId"`
	Name           snapshot.Name     `json:"name"`
	Bytes          int64             `json:"bytes"`
}

// Newest is the newest one of an installation; empty where there is none.
func (s Snapshots) Newest(of id.InstallationID) (name snapshot.Name) {
	for _, one := range s.Snapshots {
		if one.InstallationID == of {
			name = max(name, one.Name)
		}
	}
	return name
}

// Route implements Question.
func (AskSnapshots) Route() Route { return Route{Method: "GET", Path: "/v1/snapshots"} }

// Check implements Question.
func (AskSnapshots) Check() error { return nil }

// OpenSnapshot asks for the bytes of a snapshot. ReasonNotFound: it does not exist. ReasonStorageAway: where backups are kept
// does not answer.
type OpenSnapshot struct {
	InstallationID id.InstallationID `json:"-" path:"installation"`
	Name           snapshot.Name     `json:"-" path:"name"`
}

// Route implements Question.
func (OpenSnapshot) Route() Route {
	return Route{Method: "GET", Path: "/v1/snapshots/{installation}/{name}"}
}

// Check implements Question.
func (q OpenSnapshot) Check() error { return checkSnapshot(q.InstallationID, q.Name) }

func checkSnapshot(of id.InstallationID, name snapshot.Name) error {
	if _, err := id.Parse[id.InstallationID](string(of)); err != nil {
		return Refuse(ReasonInvalid, "the installation must be a UUID")
	}
	if _, err := snapshot.ParseName(string(name)); err != nil {
		return Refuse(ReasonInvalid, "%s", err)
	}
	return nil
}
