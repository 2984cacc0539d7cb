package upload

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// blamed is the field that an error names; its code where it names none, and empty for no error.
func blamed(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *fault.Error
	switch f, _ = err.(*fault.Error); {
	case f == nil:
		t.Fatalf("%v is none of a caller's", err)
	case len(f.Details) > 0:
		return f.Details[0].Field
	}
	return string(f.Code)
}

func TestWhatIsAnnounced(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	for name, c := range map[string]struct {
		size int64
		sum  string
		want string
	}{
		"one byte":         {1, sum, ""},
		"ten gigabytes":    {10 << 30, sum, ""},
		"one byte more":    {10<<30 + 1, sum, "sizeBytes"},
		"nothing":          {0, sum, "sizeBytes"},
		"less":             {-1, sum, "sizeBytes"},
		"no sum":           {1, "", "checksumSha256"},
		"upper case":       {1, strings.ToUpper(sum), "checksumSha256"},
		"a digit too few":  {1, sum[1:], "checksumSha256"},
		"a digit too many": {1, sum + "0", "checksumSha256"},
		"a line feed":      {1, sum + "\n", "checksumSha256"},
	} {
		u, err := New("u", "d", c.size, c.sum, now)
		if got := blamed(t, err); got != c.want {
			t.Errorf("%s: %q is to blame, want %q", name, got, c.want)
		}
		if err == nil && (!u.Takes(now.Add(time.Hour-1)) || u.Takes(now.Add(time.Hour))) {
			t.Errorf("%s: it expires at %s", name, u.ExpiresAt)
		}
	}
	if u, _ := New("u", "d", 1, sum, now); u.Ended().Takes(now) || !u.Ended().KeptUntil().Equal(now.Add(25*time.Hour)) {
		t.Error("what has ended takes more, or is kept for another time")
	}
	if used := (Upload{OperationID: "o", ExpiresAt: now.Add(time.Hour)}); used.Takes(now) {
		t.Error("a restore's upload takes more")
	}
}

func TestWhatAnAccountMayHave(t *testing.T) {
	of := func(sizes ...int64) (list []Upload) {
		for _, size := range sizes {
			list = append(list, Upload{SizeBytes: size})
		}
		return list
	}
	const full = "BACKUP_STORAGE_FULL"
	for name, c := range map[string]struct {
		beside []Upload
		size   int64
		want   string
	}{
		"the first":      {nil, MostBytes, ""},
		"the fourth":     {of(1, 1, 1), 1, ""},
		"the fifth":      {of(1, 1, 1, 1), 1, full},
		"all its bytes":  {of(MostBytes), MostBytes, ""},
		"a byte more":    {of(MostBytes, 1), MostBytes, full},
		"no byte is not": {of(MostBytes, MostBytes), 1, full},
	} {
		if got := blamed(t, Admits(c.beside, Upload{SizeBytes: c.size})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOnlyAllOfItIsComplete(t *testing.T) {
	u := Upload{SizeBytes: 10}
	for received, want := range map[int64]string{0: "BACKUP_CONFLICT", 9: "BACKUP_CONFLICT", 11: "BACKUP_CONFLICT", 10: ""} {
		if got := blamed(t, u.Complete(received)); got != want {
			t.Errorf("%d bytes: %q, want %q", received, got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, c := range []struct {
		header string
		length int64
		want   Piece
		blamed string
	}{
		{"", 1000, Piece{0, 1000}, ""},
		{"", 999, Piece{}, "Content-Length"},
		{"", 0, Piece{}, "Content-Length"},
		{"bytes 0-999/1000", 1000, Piece{0, 1000}, ""},
		{"bytes 0-0/1000", 1, Piece{0, 1}, ""},
		{"bytes 999-999/1000", 1, Piece{999, 1}, ""},
		{"Bytes 100-199/1000", 100, Piece{100, 100}, ""},
		{"bytes */1000", 0, Piece{}, ""},
		{"bytes */1000", 1, Piece{}, "Content-Length"},
		{"bytes */999", 0, Piece{}, "Content-Range"},
		{"bytes 100-199/1000", 99, Piece{}, "Content-Length"},
		{"bytes 100-199/1000", -1, Piece{}, "Content-Length"},
		{"bytes 100-199/1001", 100, Piece{}, "Content-Range"},
		{"bytes 100-199/*", 100, Piece{}, "Content-Range"},
		{"bytes 999-1000/1000", 2, Piece{}, "Content-Range"},
		{"bytes 5-4/1000", 0, Piece{}, "Content-Range"},
		{"bytes 0-9223372036854775807/9223372036854775807", math.MaxInt64, Piece{}, "Content-Range"},
		{"bytes 0-9223372036854775808/1000", 1, Piece{}, "Content-Range"},
		{"bytes +0-9/1000", 10, Piece{}, "Content-Range"},
		{"bytes -10/1000", 10, Piece{}, "Content-Range"},
		{"bytes 0-/1000", 1000, Piece{}, "Content-Range"},
		{"byte\u017f 0-999/1000", 1000, Piece{}, "Content-Range"},
		{"bytes 0-9,20-29/1000", 20, Piece{}, "Content-Range"},
		{"bytes  0-9/1000", 10, Piece{}, "Content-Range"},
		{"bytes=0-9/1000", 10, Piece{}, "Content-Range"},
		{"lines 0-9/1000", 10, Piece{}, "Content-Range"},
		{"bytes 0x0-9/1000", 10, Piece{}, "Content-Range"},
		{"bytes 0-9/1000 ", 10, Piece{}, "Content-Range"},
		{" ", 1000, Piece{}, "Content-Range"},
	} {
		got, err := Upload{SizeBytes: 1000}.Piece(c.header, c.length)
		if is := blamed(t, err); is != c.blamed || err == nil && got != c.want {
			t.Errorf("%q with %d bytes: %+v, %q is to blame, want %+v, %q", c.header, c.length, got, is, c.want, c.blamed)
		}
	}
	if RangeOf(0) != "" || RangeOf(1) != "bytes=0-0" || RangeOf(1000) != "bytes=0-999" {
		t.Error("what has come is written wrongly")
	}
}

// Whatever a client writes, a piece that is taken lies within the upload and is as long as its body; and what it means can be
// written in the one form of the standard.
func FuzzContentRange(f *testing.F) {
	for _, header := range []string{
		"", "bytes 0-999/1000", "bytes */1000", "bytes 999-999/1000", "bytes 5-4/1000",
		"bytes 0-18446744073709551615/1000", "bytes 0-9/*",
		"BYTES 00-09/01000", "bytes 0-9/1000\x00", "bytes ٠-٩/1000", "-", "bytes */", "bytes /",
	} {
		f.Add(header, int64(10), int64(1000))
	}
	f.Fuzz(func(t *testing.T, header string, length, size int64) {
		if size < 1 || size > MostBytes || length < 0 {
			return
		}
		p, err := Upload{SizeBytes: size}.Piece(header, length)
		if err != nil {
			blamed(t, err)
			return
		}
		if p.Size != length || p.Offset < 0 || p.Offset > size-p.Size || p.Asks() != (length == 0) {
			t.Fatalf("%q of %d with %d bytes: %+v", header, size, length, p)
		}
	})
}
