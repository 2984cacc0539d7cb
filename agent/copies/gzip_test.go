package copies

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/upload"
)

func zipped(text string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte(text)) // memory takes everything
	_ = zip.Close()
	return out.Bytes()
}

// What an upload is unpacked to is what the standard library makes of it, member after member, and no more than the bound; what
// is no gzip, is cut off, is followed by something else or unpacks to too much is BACKUP_NOT_VERIFIED.
func FuzzUpload(f *testing.F) {
	dump := zipped("-- PostgreSQL database dump\nSELECT 1;\n")
	flagged := append([]byte("\x1f\x8b\x08\x1c\x00\x00\x00\x00\x00\x03\x02\x00ab"+"name\x00"+"comment\x00"), dump[10:]...)
	for _, seed := range [][]byte{
		nil, dump, dump[:len(dump)-1], dump[:12], slices.Concat(dump, dump), slices.Concat(dump, zipped("")),
		slices.Concat(dump, []byte{0}), slices.Concat(dump, dump[:5]), flagged, zipped(upload.Mark + "SELECT 1;"),
		zipped(strings.Repeat("\n", 1<<20)), zipped(string(dump)),
		slices.Concat(zipped(strings.Repeat("x", 1<<16)), bytes.Repeat(zipped(""), 100)), zipped("PGDMP"), []byte("PK\x03\x04"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		most := int64(mostGrowth * len(packed))
		var got []byte
		err := readUpload(bytes.NewReader(packed), int64(len(packed)), func(text io.Reader) (err error) {
			got, err = io.ReadAll(text)
			return err
		})
		if err != nil && !fault.Has(err, fault.BackupNotVerified) {
			t.Fatalf("%q: %v", packed, err)
		}
		if int64(len(got)) > most {
			t.Fatalf("%d bytes become %d", len(packed), len(got))
		}
		var want []byte
		zip, wrong := gzip.NewReader(bytes.NewReader(packed))
		if wrong == nil {
			want, wrong = io.ReadAll(io.LimitReader(zip, most+1))
		}
		if int64(len(want)) > most {
			wrong = errGrowth
		}
		if wrong == nil {
			wrong = upload.Plain(want[:min(len(want), upload.MostSniffed)])
		}
		if (err == nil) != (wrong == nil) || err == nil && string(got) != strings.TrimPrefix(string(want), upload.Mark) {
			t.Errorf("%q becomes %q (%v), and by the standard library %q (%v)", packed, got, err, want, wrong)
		}
	})
}

// Whatever a peer sends as a file that passes, it is read to its end, or is damaged; what zstd has packed comes back.
func FuzzPassing(f *testing.F) {
	const text = "-- PostgreSQL database dump\nSELECT 1;\n"
	pack := check.Must(zstd.NewWriter(nil))(f)
	whole := pack.EncodeAll([]byte(text), nil)
	wide := check.Must(zstd.NewWriter(nil, zstd.WithWindowSize(2*PackedWindow)))(f)
	for _, seed := range [][]byte{
		nil, whole, whole[:len(whole)-3], slices.Concat(whole, whole), slices.Concat(whole, []byte("x")),
		[]byte("\x28\xb5\x2f\xfd\xff"), []byte("\x50\x2a\x4d\x18\xff\xff\xff\xff"),
		wide.EncodeAll([]byte(strings.Repeat(text, 1<<17)), nil), pack.EncodeAll(make([]byte, 1<<24), nil),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		read := func(packed []byte) (got []byte, err error) {
			src := &counted{src: bytes.NewReader(packed), sum: sha256.New(), report: func(int64) {}}
			err = unpack(src, func(text io.Reader) (err error) {
				got, err = io.ReadAll(io.LimitReader(text, 1<<24))
				return err
			})
			return got, err
		}
		_, err := read(packed)
		if damaged := new(damagedError); err != nil && !errors.As(err, &damaged) {
			t.Fatalf("%q: %v", packed, err)
		}
		if got, err := read(pack.EncodeAll(packed, nil)); err != nil || !bytes.Equal(got, packed) {
			t.Errorf("%q comes back as %q, %v", packed, got, err)
		}
	})
}
