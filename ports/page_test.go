package ports

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestCursorComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Position{
			Key: rapid.StringMatching(`([0-9a-z-]{1,64})?`).Draw(t, "key"),
			ID:  rapid.StringMatching(`[0-9A-Za-z._-]{1,64}`).Draw(t, "id"),
		}
		if p.Key == "" {
			p.At = time.UnixMicro(rapid.Int64Range(0, lastInstant.UnixMicro()-1).Draw(t, "at")).UTC()
		}
		got, err := ParseCursor(p.Cursor())
		if err != nil || *got != p {
			t.Fatalf("%+v: %s, %+v, %v", p, p.Cursor(), got, err)
		}
	})
}

func TestCursorsOfRealLists(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 30, 0, 123_456_000, time.UTC)
	for _, id := range []string{"0189abcd-ef01-4234-8567-89abcdef0123", "20260105_093000.sql.gz"} {
		c := Position{At: at, ID: id}.Cursor()
		if p, err := ParseCursor(c); err != nil || p.ID != id || !p.At.Equal(at) || strings.ContainsAny(c, "+/=") {
			t.Errorf("%s: %s, %+v, %v", id, c, p, err)
		}
	}
}

func encoded(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func TestForgedCursors(t *testing.T) {
	good := Position{At: time.UnixMicro(1), ID: "a"}.Cursor()
	bad := map[string]string{
		"empty": "", "no base64": "!", "padded": good + "=", "line break": good[:2] + "\n" + good[2:], "blank": " " + good,
		"nothing in it": encoded(""), "no dot": encoded("1a"), "no time": encoded(".a"), "no ID": encoded("1."),
		"no number": encoded("!.a"), "before 1970": encoded("-1.a"), "plus sign": encoded("+1.a"), "leading zero": encoded("01.a"),
		"upper case": encoded("A.a"), "far away": encoded(strconv.FormatInt(math.MaxInt64, 36) + ".a"),
		"long ago": encoded(strconv.FormatInt(math.MinInt64, 36) + ".a"), "overflow": encoded("zzzzzzzzzzzzzzzz.a"),
		"NUL": encoded("1.a\x00"), "no UTF-8": encoded("1.\xff"), "quote": encoded("1.'"), "line end in ID": encoded("1.a\n"),
		"no key": encoded("~.a"), "key alone": encoded("~shop"), "key in upper case": encoded("~Shop.a"), "two keys": encoded("~~a.a"),
		"line end in key": encoded("~shop\n.a"), "long key": encoded("~" + strings.Repeat("a", 65) + ".a"),
		"quote in key": encoded("~'.a"), "long ID": encoded("1." + strings.Repeat("a", 65)),
	}
	for name, s := range bad {
		if p, err := ParseCursor(s); !fault.Has(err, fault.ValidationError) || p != nil {
			t.Errorf("%s: %q, %+v, %v", name, s, p, err)
		}
	}
}

// A cursor that is taken is one that the service has written, of one order, and has nothing that SQL would read.
func FuzzParseCursor(f *testing.F) {
	f.Add(Position{At: time.UnixMicro(1), ID: "a"}.Cursor())
	f.Add(encoded("zzzzzzzzzzzz.a"))
	f.Add(encoded("1.\x00"))
	f.Add(Position{Key: "shop-1", ID: "a"}.Cursor())
	f.Add(encoded("~0.~a"))
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseCursor(s)
		if err != nil {
			return
		}
		timed := p.At.Year() >= 1970 && p.At.Year() <= 9999
		if p.Cursor() != s || timed == (p.Key != "") || p.ID == "" || strings.ContainsAny(p.Key+p.ID, "\x00\n'") {
			t.Errorf("%q is accepted as %+v", s, p)
		}
	})
}
