package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pgherd/pgherd/core/command"
)

// Command is declarative: it describes the desired state. Its identity is operation, step, resource, generation and payload
// hash; a repeated command gets the same reply. Epoch is the lease epoch of the worker that sends it: an agent refuses an epoch
// lower than the highest that it has seen for the operation. A command without an operation leaves OperationID empty and Epoch
// zero.
type Command struct {
	Kind        command.Kind    `json:"kind"`
	OperationID string          `json:"operationId"`
	Epoch       int64           `json:"epoch"`
	Step        string          `json:"step"`
	Resource    string          `json:"resource"` // "database/<id>"
	Generation  int64           `json:"generation"`
	PayloadHash string          `json:"payloadHash"` // lower-case hex SHA-256 of Payload as sent
	Payload     json.RawMessage `json:"payload"`
	// Secrets are kept out of Payload and of its hash. They are never stored or logged.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Hash returns the payload hash of a payload.
func Hash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Reply answers a command that was done or, for backup.run, is in progress.
type Reply struct {
	Result json.RawMessage `json:"result"`
}
