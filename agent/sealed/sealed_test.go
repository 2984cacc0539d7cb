package sealed_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sealed"
)

var key = bytes.Repeat([]byte{7}, sealed.KeyBytes)

const name = "databases/one/file"

func seal(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := check.Must(sealed.NewWriter(&out, key, name))(t)
	check.Must(w.Write(text))(t)
	check.NoError(t, w.Close())
	return out.Bytes()
}

func open(text, key []byte, name string) ([]byte, error) {
	r, err := sealed.NewReader(bytes.NewReader(text), key, name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// The lengths are those around one segment and two.
func TestWhatIsSealedIsOpened(t *testing.T) {
	const first, next = 1<<20 - 40 - 16, 1<<20 - 16
	for _, n := range []int{0, 1, 1000, first - 1, first, first + 1, first + next - 1, first + next, first + next + 1, 5_000_000} {
		text := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		out := seal(t, text)
		if got := check.Must(open(out, key, name))(t); !bytes.Equal(got, text) {
			t.Errorf("of %d bytes, %d come back, or others", n, len(got))
		}
		if got := sealed.Length(int64(len(out))); got != int64(n) {
			t.Errorf("%d bytes are sealed in %d, which are taken for %d", n, len(out), got)
		}
	}
}

func TestWhatIsNotWholeIsDamaged(t *testing.T) {
	text := bytes.Repeat([]byte("a customer's data "), 200_000)
	whole := seal(t, text)
	flipped := func(at int) []byte { c := slices.Clone(whole); c[at] ^= 1; return c }
	second := whole[1<<20 : 2<<20]
	for what, c := range map[string]struct {
		text, key []byte
		name      string
	}{
		"empty":                    {nil, key, name},
		"a header alone":           {whole[:40], key, name},
		"cut off in the header":    {whole[:20], key, name},
		"cut off":                  {whole[:len(whole)-1], key, name},
		"cut off after a segment":  {whole[:1<<20], key, name},
		"longer":                   {append(slices.Clone(whole), 0), key, name},
		"a bit of the header":      {flipped(5), key, name},
		"its first byte":           {flipped(0), key, name},
		"a bit of the data":        {flipped(len(whole) / 2), key, name},
		"its last bit":             {flipped(len(whole) - 1), key, name},
		"a segment twice":          {slices.Concat(whole[:2<<20], second, whole[2<<20:]), key, name},
		"without a segment":        {slices.Concat(whole[:1<<20], whole[2<<20:]), key, name},
		"another key":              {whole, bytes.Repeat([]byte{8}, sealed.KeyBytes), name},
		"another name":             {whole, key, name + "x"},
		"what was not sealed":      {text, key, name},
		"another's header on this": {slices.Concat(seal(t, text)[:40], whole[40:]), key, name},
	} {
		if got, err := open(c.text, c.key, c.name); !errors.Is(err, sealed.ErrDamaged) || !bytes.HasPrefix(text, got) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
}

// Who reads over a network is told of the network, not of damage.
func TestAnErrorOfTheSourceStaysWhatItIs(t *testing.T) {
	gone := errors.New("the connection is gone")
	whole := seal(t, bytes.Repeat([]byte("x"), 3<<20))
	for _, at := range []int{0, 10, 38, 1000, 1 << 20, 2<<20 + 5} {
		r, err := sealed.NewReader(io.MultiReader(bytes.NewReader(whole[:at]), iotest.ErrReader(gone)), key, name)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, gone) {
			t.Errorf("after %d bytes: %v", at, err)
		}
	}
}

func TestAKeyHasItsLength(t *testing.T) {
	for _, n := range []int{0, 16, 31, 33, 64} {
		k := []byte(strings.Repeat("k", n))
		if _, err := sealed.NewWriter(io.Discard, k, name); err == nil {
			t.Errorf("a key of %d bytes seals", n)
		}
		if _, err := open(seal(t, nil), k, name); err == nil {
			t.Errorf("a key of %d bytes opens", n)
		}
	}
}

// Nothing is opened but what was sealed, to its last byte.
func FuzzReader(f *testing.F) {
	f.Add(seal(f, []byte("data")))
	f.Add([]byte{40})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := open(text, key, name); err == nil && string(got) != "data" {
			t.Errorf("%q was opened", got)
		}
	})
}
