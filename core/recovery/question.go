package recovery

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"

	"github.com/pgherd/pgherd/core/id"
)

// Question is what a search asks at each moment. What its answer is compared with is a customer's data as the answers are, and
// the query can name some: so both are kept encrypted, and reach the agent apart from what it stores.
type Question struct {
	Query string `json:"query"`
	Until string `json:"until"` // as ParseUntil reads it
	// Key is what the agent seals the result with, which it stores until long after the search: the keys that it has itself stand
	// beside that. Each search has another one.
	Key []byte `json:"key"`
}

// KeyBytes is the length of a Question's key.
const KeyBytes = 32

func (q Question) sealer() (cipher.AEAD, error) {
	block, err := aes.NewCipher(q.Key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts the result of a search with its key, and binds it to the operation. A key of another length than KeyBytes is an
// error.
func (q Question) Seal(of id.OperationID, r SearchResult) ([]byte, error) {
	box, err := q.sealer()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, text, []byte(of)), nil //nolint:gosec // it chooses its nonces itself, and takes none
}

// Open decrypts what Seal has made for the operation.
func (q Question) Open(of id.OperationID, sealed []byte) (r SearchResult, err error) {
	box, err := q.sealer()
	if err != nil {
		return r, err
	}
	text, err := box.Open(nil, nil, sealed, []byte(of))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}
