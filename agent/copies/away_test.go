package copies

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/core/fault"
)

// unreached says of where a file is that it does not answer.
type unreached struct{ error }

func (unreached) Away()           {}
func (e unreached) Unwrap() error { return e.error }

// torn is a file that is read from somewhere, of which the beginning comes.
type torn struct{ io.Reader }

func (torn) Close() error  { return nil }
func (torn) rewind() error { return nil }

// What breaks off on its way is not damaged, however the connection ends, nor is it at its end.
func TestAFileThatBreaksOffIsNotDamaged(t *testing.T) {
	var zipped, packed bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	zs := check.Must(zstd.NewWriter(&packed, zstd.WithWindowSize(PackedWindow)))(t)
	for _, w := range []io.WriteCloser{gz, zs} {
		for n := range 50_000 {
			check.Must(fmt.Fprintf(w, "SELECT %d;\n", n*n))(t)
		}
		check.NoError(t, w.Close())
	}
	for what, c := range map[string]struct {
		passing bool
		text    []byte
		err     error
	}{
		"a peer, cut off":          {true, packed.Bytes(), &peer.AwayError{Cause: io.ErrUnexpectedEOF}},
		"a peer, at an end":        {true, packed.Bytes(), &peer.AwayError{Cause: io.EOF}},
		"an object store, cut off": {false, zipped.Bytes(), unreached{io.ErrUnexpectedEOF}},
	} {
		half := io.MultiReader(bytes.NewReader(c.text[:len(c.text)/2]), iotest.ErrReader(c.err))
		set := &fileSet{passing: c.passing, data: torn{half}}
		_, err := set.readFile(func(int64, int64) {}, toItsEnd)
		if !jobs.IsAway(err) || fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
