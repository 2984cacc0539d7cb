package operation

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// BackupInput is the input of a backup operation.
type BackupInput struct {
	Filename string `json:"filename"`
	Trigger  string `json:"trigger"`
	Verify   bool   `json:"verify"`
	// MaxBytes is what the quota leaves for the file; 0: it does not count. NoRoom says that it leaves nothing.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	NoRoom   bool  `json:"noRoom,omitempty"`
}

// BackupResult is the result of a succeeded backup operation.
type BackupResult struct {
	Filename       string     `json:"filename"`
	SizeBytes      int64      `json:"sizeBytes"`
	ChecksumSHA256 string     `json:"checksumSha256"`
	VerifiedAt     *time.Time `json:"verifiedAt"`
}

// LifecycleInput is the input of a lifecycle operation; Generation is the database's access generation that it produces. From is
// the status in which it began, and in which it leaves the database if it fails.
type LifecycleInput struct {
	Action     string `json:"action"`
	From       string `json:"from"`
	Generation int64  `json:"generation"`
	Ordered
}

// CreateInput is the input of a creation. On is the one server that may have the database; empty: any.
type CreateInput struct {
	On id.ServerID `json:"on,omitempty"`
	Ordered
}

// QueryTimeoutInput is the input of a change of query timeouts; From is the profile in effect before.
type QueryTimeoutInput struct {
	From    string `json:"from"`
	Profile string `json:"profile"`
}

// Encode writes an input or a result. The types above always encode.
func Encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("operation: " + err.Error())
	}
	return b
}

// Decode reads an input or a result back.
func Decode[T any](raw json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}
