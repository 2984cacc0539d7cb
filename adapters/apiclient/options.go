package apiclient

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"unicode"
)

// Option changes a single call.
type Option func(*options)

type options struct {
	key      *string
	response *Response

	// Of a download that goes on; see Continue and Again.
	have  io.Reader
	size  int64
	tag   string
	again func()
}

const keyHeader = "Idempotency-Key"

// IdempotencyKey sends a key of the caller's. Whoever wants to repeat a call later, or after a crash, needs to know its key. With
// an empty one none is sent, and the call is not repeated. Calls that take no key ignore it.
func IdempotencyKey(key string) Option {
	return func(o *options) { o.key = &key }
}

// KeepResponse stores what came last, with its status, header and bytes, which may hold a password. A download is not kept.
func KeepResponse(r *Response) Option {
	return func(o *options) { o.response = r }
}

func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// keyOf is the caller's key, or a new one.
func keyOf(o options) (string, error) {
	if o.key == nil {
		return newKey(), nil
	}
	if strings.ContainsFunc(*o.key, unicode.IsControl) {
		return "", errors.New("apiclient: an Idempotency-Key has no control characters")
	}
	return *o.key, nil
}
