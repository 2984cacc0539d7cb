// Package search looks for inputs that fail, of a fuzz target whose tries take a while: they start programs or ask a PostgreSQL.
// (Go's own search spends its time on making inputs shorter, and ends what takes more than ten seconds as hanging.)
package search

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// What the searches are told by the environment.
const (
	forTime = "PGHERD_FUZZ"      // how long each makes new inputs; without it, it makes one
	bySeed  = "PGHERD_FUZZ_SEED" // what one has logged, for the same inputs of the same corpus; without it, they are new
)

// Prefix begins the name of a test that searches for the fuzz target with the rest of its name.
const Prefix = "TestSearch"

// Beyond tries inputs that are not in the corpus of the test's fuzz target: TestSearchX searches for FuzzX. The first that fails
// ends it, and is kept in the corpus.
func Beyond(t *testing.T, try func(t *testing.T, input []byte)) {
	t.Helper()
	begun, lasts, seed := time.Now(), time.Duration(0), rand.Uint64()
	if text := os.Getenv(forTime); text != "" {
		lasts = check.Must(time.ParseDuration(text))(t)
	}
	if text := os.Getenv(bySeed); text != "" {
		seed = check.Must(strconv.ParseUint(text, 10, 64))(t)
	}
	t.Logf("%s=%d", bySeed, seed)
	dir := filepath.Join("testdata", "fuzz", "Fuzz"+strings.TrimPrefix(t.Name(), Prefix))
	m := maker{rand.New(rand.NewPCG(seed, 0)), corpus(t, dir)}
	first, tried := m.IntN(256), 0
	for tried == 0 || time.Since(begun) < lasts {
		input := m.input()
		input[0] = byte(first + tried) // which decides most: each of its choices has its turn
		tried++
		if !t.Run("", func(t *testing.T) { try(t, input) }) {
			t.Errorf("input %d fails; it is kept as %s", tried, keepInput(t, dir, input))
			break
		}
	}
	t.Logf("inputs: %d, in %v", tried, time.Since(begun).Round(time.Millisecond))
}

// The form in which Go keeps a target's inputs.
const (
	inputHead = "go test fuzz v1\n[]byte("
	inputTail = ")\n"
)

// corpus are the inputs that are kept.
func corpus(t *testing.T, dir string) (inputs [][]byte) {
	t.Helper()
	for _, file := range check.Must(os.ReadDir(dir))(t) {
		text := string(check.Must(os.ReadFile(filepath.Join(dir, file.Name())))(t))
		literal, isOne := strings.CutPrefix(strings.TrimSuffix(text, "\n")+"\n", inputHead)
		literal, whole := strings.CutSuffix(literal, inputTail)
		if !isOne || !whole {
			t.Fatalf("%s is no input", file.Name())
		}
		inputs = append(inputs, []byte(check.Must(strconv.Unquote(literal))(t)))
	}
	return inputs
}

// keepInput returns the file that has an input from now on.
func keepInput(t *testing.T, dir string, input []byte) string {
	t.Helper()
	text := inputHead + strconv.Quote(string(input)) + inputTail
	file := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16])
	check.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// maker makes inputs by chance.
type maker struct {
	*rand.Rand
	corpus [][]byte
}

// longest is the length of an input that makes some thirty objects. One that is much shorter takes nearly as long.
const longest = 1500

// input is new, or made of those of the corpus. It has a byte at least.
func (m maker) input() []byte {
	if m.IntN(2) == 0 {
		return m.bytes(1 + m.IntN(longest))
	}
	input := bytes.Join([][]byte{m.changed(m.one()), m.changed(m.one()), m.changed(m.one())}, nil)
	return input[:min(len(input), 1+m.IntN(longest))]
}

func (m maker) one() []byte { return m.corpus[m.IntN(len(m.corpus))] }

// changed is an input with some of its pieces replaced, left out, or followed by others.
func (m maker) changed(input []byte) []byte {
	for range 1 + m.IntN(4) {
		from := m.IntN(len(input))
		to := from + m.IntN(len(input)-from)
		between := [][]byte{nil, m.bytes(1), m.bytes(1 + m.IntN(30)), input[from:to], m.part(m.one())}[m.IntN(5)]
		input = append(bytes.Join([][]byte{input[:from], between, input[to:]}, nil), m.bytes(1)...)
	}
	return input
}

func (m maker) part(input []byte) []byte {
	from := m.IntN(len(input))
	return input[from : from+m.IntN(len(input)-from)]
}

func (m maker) bytes(n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(m.UintN(256))
	}
	return text
}
