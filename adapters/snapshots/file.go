// Package snapshots encrypts snapshots of the metadata, and reads them. A snapshot is a file: a line that says what it is, a head
// in JSON, and what the metadata have, compressed and encrypted with a key of its own, which the head has encrypted with the key
// ring. It cannot be read under another head, and so not as one of another installation, name or time.
package snapshots

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/ports"
)

// magic begins every snapshot.
const magic = "pgherd snapshot of metadata\n"

// Format is the newest that this program knows.
const Format = 1

// Head is what of a snapshot can be read without a key.
type Head struct {
	Format         int               `json:"format"`
	InstallationID id.InstallationID `json:"installationId"`
	Name           snapshot.Name     `json:"name"`
	Program        string            `json:"program"` // the version that took it
	// Ring is the key of the ring that Key is encrypted with.
	Ring keyring.Fingerprint `json:"ring"`
	Key  []byte              `json:"key"`
}

func (h Head) context() string { return "snapshot/" + string(h.InstallationID) + "/" + string(h.Name) }

// Ring encrypts the keys of snapshots.
type Ring interface {
	ports.SecretBox
	// SealedBy is the key that has encrypted something; empty where it is none of the ring's.
	SealedBy(sealed []byte) keyring.Fingerprint
}

// What a snapshot can have that cannot be read. None of them wraps anything of what was read.
var (
	ErrNone      = errors.New("it is no snapshot of metadata")
	ErrNewer     = errors.New("it was taken by a newer program: run one of that version")
	ErrOther     = errors.New("it is another snapshot than its place says")
	ErrOtherRing = errors.New("the key ring is another one than it was encrypted with: bring a copy of that")
	ErrDamaged   = errors.New("it is damaged, or not whole")
)

// maxHead is more than a head has.
const maxHead = 64 << 10

// write writes a snapshot, of which content writes what it has.
func write(w io.Writer, h Head, ring Ring, content func(io.Writer) error) error {
	key := make([]byte, sealed.KeyBytes)
	_, _ = rand.Read(key) // it never fails
	var err error
	if h.Key, err = ring.Seal(key, h.context()); err != nil {
		return err
	}
	h.Format, h.Ring = Format, ring.SealedBy(h.Key)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", magic, head); err != nil {
		return err
	}
	encrypting, err := sealed.NewWriter(w, key, string(head))
	if err != nil {
		return err
	}
	packing, err := zstd.NewWriter(encrypting, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	if err := content(packing); err != nil {
		return errors.Join(err, packing.Close(), encrypting.Close()) // both write to w, and hold nothing else
	}
	if err := packing.Close(); err != nil {
		return err
	}
	return encrypting.Close()
}

// Opened is a snapshot of which the head was read.
type Opened struct {
	Head
	head []byte
	rest *bufio.Reader
}

// Open reads the head of a snapshot. ErrNone, ErrNewer. An error of r stays what it is.
func Open(r io.Reader) (o Opened, err error) {
	o.rest = bufio.NewReaderSize(r, maxHead)
	begin, err := o.rest.Peek(len(magic))
	switch {
	case !bytes.HasPrefix([]byte(magic), begin), errors.Is(err, io.EOF):
		return o, ErrNone
	case err != nil:
		return o, err
	}
	_, _ = o.rest.Discard(len(magic)) // it was read
	line, err := o.rest.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return o, ErrDamaged
	case err != nil:
		return o, err
	}
	o.head = bytes.Clone(bytes.TrimSuffix(line, []byte("\n")))
	if json.Unmarshal(o.head, &o.Head) != nil || o.Format < 1 {
		return o, ErrDamaged
	}
	if o.Format > Format {
		return o, fmt.Errorf("%w (%q; its format is %d, known is %d)", ErrNewer, o.Program, o.Format, Format)
	}
	return o, nil
}

// Read calls content with what the snapshot has, and makes sure that this was all. of and name are those that it is kept as.
// ErrOther, ErrOtherRing, ErrDamaged. Other errors are those of content, and of the reader that the snapshot comes from.
func (o Opened) Read(ring Ring, of id.InstallationID, name snapshot.Name, content func(io.Reader) error) error {
	if o.InstallationID != of || o.Name != name {
		return fmt.Errorf("%w: the one of %s, of the installation %s", ErrOther, o.Name, o.InstallationID)
	}
	key, err := ring.Open(o.Key, o.context())
	switch {
	case errors.Is(err, ports.ErrNoRing):
		return err
	case err != nil && ring.SealedBy(o.Key) == "":
		return fmt.Errorf("%w (its key is %s)", ErrOtherRing, o.Ring)
	case err != nil:
		return ErrDamaged
	}
	opened, err := sealed.NewReader(o.rest, key, string(o.head))
	if err != nil {
		return damaged(err)
	}
	failed := &failing{Reader: opened}
	unpacked, err := zstd.NewReader(failed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return damaged(errors.Join(failed.err, err))
	}
	defer unpacked.Close()
	if err = content(unpacked); err == nil {
		_, err = io.Copy(io.Discard, unpacked) // there may be a last piece that was not looked at
	}
	if failed.err != nil { // the other error comes of it
		return damaged(failed.err)
	}
	return err
}

// maxWindow bounds the memory for reading one.
const maxWindow = 256 << 20

func damaged(err error) error {
	if errors.Is(err, sealed.ErrDamaged) {
		return ErrDamaged
	}
	return err
}

// failing keeps the error that reading has ended with.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
