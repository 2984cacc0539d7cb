package backup_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
)

// sumOf writes whole lines.
func sumOf(lines ...string) (s backup.LineSum) {
	for _, line := range lines {
		_, _ = s.Write([]byte(line + "\n"))
	}
	return s
}

func digestOf(columns []string, lines ...string) backup.TableDigest {
	s := sumOf(lines...)
	return s.Digest(columns)
}

// rows are few and short, so that some are equal, and others differ in one value only.
func rows(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}\t[ab]{0,1}`), 0, 12).Draw(t, "rows")
}

func TestADigestIsTheSumModulo2To256(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines, want := rows(t), new(big.Int)
		for _, line := range lines {
			sum := sha256.Sum256([]byte(line))
			want.Add(want, new(big.Int).SetBytes(sum[:]))
		}
		want.Mod(want, new(big.Int).Lsh(big.NewInt(1), 256))
		got := digestOf(nil, lines...)
		if got.Sum != fmt.Sprintf("%064x", want) || got.Rows != int64(len(lines)) {
			t.Fatalf("got %+v, want %064x", got, want)
		}
	})
}

func TestSumsOfPartsMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := rows(t), rows(t)
		merged := sumOf(first...)
		merged.Merge(sumOf(second...).Sum)
		if got, want := merged.Digest(nil), digestOf(nil, append(first, second...)...); got.Sum != want.Sum || got.Rows != want.Rows {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// Two tables have the same digest exactly if they have the same rows, each as often: in whatever order, and in whatever pieces.
func TestADigestStandsForItsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rows(t), rows(t)
		shuffled := rapid.Permutation(a).Draw(t, "shuffled")
		if digestOf(nil, a...).Sum != digestOf(nil, shuffled...).Sum {
			t.Fatal("the order matters")
		}
		slices.Sort(a)
		slices.Sort(b)
		x, y := digestOf(nil, a...), digestOf(nil, b...)
		if equal := x.Sum == y.Sum && x.Rows == y.Rows; equal != slices.Equal(a, b) {
			t.Fatalf("%q and %q are equal: %t", a, b, equal)
		}
	})
}

func TestADigestSeesWhatAPairCanHide(t *testing.T) {
	base := []string{"1\ta", "2\tb"}
	digest := digestOf(nil, base...)
	for name, lines := range map[string][]string{
		"two equal rows more":    {"1\ta", "2\tb", "3\tc", "3\tc"},
		"every row twice":        {"1\ta", "2\tb", "1\ta", "2\tb"},
		"one twice, one missing": {"1\ta", "1\ta"},
		"two values swapped":     {"1\tb", "2\ta"},
		"two rows in one":        {"1\ta2\tb"},
		"another row":            {"1\ta", "2\tc"},
	} {
		if got := digestOf(nil, lines...); got.Sum == digest.Sum {
			t.Errorf("%s: the same digest", name)
		}
	}
}

func TestLinesInPieces(t *testing.T) {
	text := strings.Repeat("x", 100_000) + "\n\nshort\n" + strings.Repeat("y", 1000) + "\n"
	want := digestOf(nil, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	var whole, pieces backup.LineSum
	_, _ = whole.Write([]byte(text))
	for _, c := range []byte(text) {
		_, _ = pieces.Write([]byte{c})
	}
	for name, s := range map[string]*backup.LineSum{"whole": &whole, "in bytes": &pieces} {
		if got := s.Digest(nil); got.Sum != want.Sum || got.Rows != 4 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// The OID counts: contents that two objects have exchanged are a change.
func TestLargeObjectsAreHashedWithTheirOID(t *testing.T) {
	var a, b backup.Sum
	for i, content := range []string{"one", "two"} {
		for s, oid := range map[*backup.Sum]uint32{&a: uint32(1 + i), &b: uint32(2 - i)} {
			h := backup.LargeObjectHash(oid)
			h.Write([]byte(content))
			s.Add(h.Sum(nil))
		}
	}
	if a.Digest(nil).Sum == b.Digest(nil).Sum {
		t.Error("the same digest")
	}
	want := sha256.Sum256([]byte("16401 text"))
	h := backup.LargeObjectHash(16401)
	h.Write([]byte("text"))
	if !bytes.Equal(h.Sum(nil), want[:]) {
		t.Error("another hash than the documented one")
	}
}
