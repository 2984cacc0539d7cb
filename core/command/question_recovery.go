package command

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// RecoveryWindow asks from when to when a database can be had back by a Backup with At. ReasonNotFound: there is no such
// database.
type RecoveryWindow struct {
	Returns[RecoverableTime] `json:"-"`
	DatabaseID               id.DatabaseID `json:"-" path:"id"`
}

// RecoverableTime is the answer.
type RecoverableTime struct {
	// Archived says that the server keeps an archive. Where it does not, there is nothing else.
	Archived bool            `json:"archived"`
	Window   recovery.Window `json:"window,omitzero"`
}

// Route implements Question.
func (RecoveryWindow) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/recovery-window"}
}

// Check implements Question.
func (q RecoveryWindow) Check() error { return checkDatabase(q.DatabaseID) }
