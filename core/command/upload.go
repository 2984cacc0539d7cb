package command

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// An upload is a file of a customer that comes to the server of a database in chunks, to be restored from. It belongs to no
// operation: OpenUpload keeps room for it until it expires, Chunks append to it, Load reads it, and DropUpload ends it. It is
// known by its database and its identifier, and outlives the agent's process.

// OpenUpload makes sure that the server keeps an upload, and the room for all of it, until it expires. It may come again, and
// answers how far the upload is. ReasonNotFound: the server has no such database. ReasonStorageFull: there is
// no room for it. ReasonConflict: the upload is there with another size.
type OpenUpload struct {
	Returns[Uploaded] `json:"-"`
	DatabaseID        id.DatabaseID `json:"-" path:"id"`
	UploadID          id.UploadID   `json:"-" path:"upload"`
	SizeBytes         int64         `json:"sizeBytes"`
	// ExpiresAt is when the agent removes the upload by itself, unless a Load has it. The control plane drops it before.
	ExpiresAt time.Time `json:"expiresAt"`
}

// AskUpload asks how far an upload is. ReasonNotFound: there is none.
type AskUpload struct {
	Returns[Uploaded] `json:"-"`
	DatabaseID        id.DatabaseID `json:"-" path:"id"`
	UploadID          id.UploadID   `json:"-" path:"upload"`
}

// Route implements Question.
func (AskUpload) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/uploads/{upload}"}
}

// Check implements Question.
func (q AskUpload) Check() error { return checkUpload(q.DatabaseID, q.UploadID, 1) }

// Uploaded is how far an upload is.
type Uploaded struct {
	ReceivedBytes int64 `json:"receivedBytes"` // that are safe on disk, from the beginning
}

// Route implements Question.
func (OpenUpload) Route() Route {
	return Route{Method: "PUT", Path: "/v1/databases/{id}/uploads/{upload}"}
}

// Check implements Question.
func (q OpenUpload) Check() error {
	if q.ExpiresAt.IsZero() {
		return Refuse(ReasonInvalid, "expiresAt is missing")
	}
	return checkUpload(q.DatabaseID, q.UploadID, q.SizeBytes)
}

// Chunk appends the bytes that come with it to an upload; see ports.Agent.Send. Of a chunk that breaks off, what has come is
// kept. Its answer comes when all of it is safe on disk.
//
// ReasonNotFound: there is no such upload. ReasonBusy: another chunk of it is coming at this moment. ReasonCrowded: as many
// chunks of other uploads are coming as the agent takes at a time. ReasonConflict: Offset is not how far the upload is.
// ReasonInvalid: the chunk goes beyond the upload's size. ReasonStorageFull: the disk is full after all.
type Chunk struct {
	Returns[Uploaded] `json:"-"`
	DatabaseID        id.DatabaseID `json:"-" path:"id"`
	UploadID          id.UploadID   `json:"-" path:"upload"`
	Offset            int64         `json:"-" path:"offset"` // of its first byte
}

// Route implements Question.
func (Chunk) Route() Route {
	return Route{Method: "PATCH", Path: "/v1/databases/{id}/uploads/{upload}/{offset}"}
}

// Check implements Question.
func (q Chunk) Check() error {
	if q.Offset < 0 {
		return Refuse(ReasonInvalid, "offset must be a number of bytes")
	}
	return checkUpload(q.DatabaseID, q.UploadID, 1)
}

// DropUpload removes an upload and gives its room back; a missing one is no error, also where its database is gone. A chunk that
// is coming is broken off.
type DropUpload struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"-" path:"id"`
	UploadID      id.UploadID   `json:"-" path:"upload"`
}

// Route implements Question.
func (DropUpload) Route() Route {
	return Route{Method: "DELETE", Path: "/v1/databases/{id}/uploads/{upload}"}
}

// Check implements Question.
func (q DropUpload) Check() error { return checkUpload(q.DatabaseID, q.UploadID, 1) }

func checkUpload(db id.DatabaseID, upload id.UploadID, size int64) error {
	if _, err := id.Parse[id.UploadID](string(upload)); err != nil {
		return Refuse(ReasonInvalid, "the upload must be a UUID")
	}
	if size < 1 {
		return Refuse(ReasonInvalid, "sizeBytes must be positive")
	}
	return checkDatabase(db)
}
