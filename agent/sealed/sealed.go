// Package sealed encrypts what leaves the machine. It is Tink's streaming AEAD: AES-256-GCM in segments of 1 MiB, under a key
// that is derived for each stream. A stream that was changed, cut off, put together anew, or given another name cannot be opened.
package sealed

import (
	"errors"
	"fmt"
	"io"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"

	"github.com/pgherd/pgherd/core/backup"
)

// KeyBytes is the length of a key.
const KeyBytes = backup.KeyBytes

const (
	segment = 1 << 20
	header  = 1 + KeyBytes + subtle.AESGCMHKDFNoncePrefixSizeInBytes
	tag     = subtle.AESGCMHKDFTagSizeInBytes
)

// ErrDamaged means that a stream is not what was sealed under this key and name. The cause cannot be told apart.
var ErrDamaged = errors.New("it is damaged, or was encrypted with another key or for another name")

func primitive(key []byte) (*subtle.AESGCMHKDF, error) {
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("a key has %d bytes, not %d", KeyBytes, len(key))
	}
	return subtle.NewAESGCMHKDF(key, "SHA256", KeyBytes, segment, 0)
}

// NewWriter seals what is written, for a name. Nothing can be opened before Close, which leaves w open.
func NewWriter(w io.Writer, key []byte, name string) (io.WriteCloser, error) {
	p, err := primitive(key)
	if err != nil {
		return nil, err
	}
	return p.NewEncryptingWriter(w, []byte(name))
}

// NewReader opens what NewWriter has sealed for a name. It gives out nothing that it has not checked, and io.EOF only where the
// whole stream was there: ErrDamaged otherwise. An error of r stays what it is.
func NewReader(r io.Reader, key []byte, name string) (io.Reader, error) {
	p, err := primitive(key)
	if err != nil {
		return nil, err
	}
	src := &source{Reader: r}
	opened, err := p.NewDecryptingReader(src, []byte(name))
	if err != nil {
		return nil, src.cause()
	}
	return &reader{opened: opened, src: src}, nil
}

type reader struct {
	opened io.Reader
	src    *source
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.opened.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.src.cause()
	}
	return n, err
}

// source keeps the error that reading has ended with.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) cause() error {
	if s.err != nil {
		return s.err
	}
	return ErrDamaged
}

// Length is how many bytes are in a sealed stream of so many: 0 where that can be none.
func Length(sealed int64) int64 {
	segments := (sealed + segment - 1) / segment
	return max(0, sealed-header-segments*tag)
}
