// Package sample decides how much of the whole proof a run of the tests shows.
//
// Where PGHERD_SAMPLE is not set, as in "make check" and for "go test" by hand, a run shows everything. "make test" sets it to a
// number, the seed, which is another one each day: of what takes long, the run then shows one in several, and runs with as many
// seeds in a row show all of it.
package sample

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Seed is the environment variable with the seed.
const Seed = "PGHERD_SAMPLE"

// Whole reports whether the run shows everything.
func Whole() bool { return os.Getenv(Seed) == "" }

// Number is the seed, or 0 where the run shows everything.
func Number(t testing.TB) uint64 {
	t.Helper()
	seed, err := number()
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func number() (uint64, error) {
	if Whole() {
		return 0, nil
	}
	seed, err := strconv.ParseUint(os.Getenv(Seed), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", Seed, err)
	}
	return seed, nil
}

// OneIn is the list, or one in several of its elements; of a list that is shorter, one.
func OneIn[T any](t testing.TB, several int, list []T) []T {
	t.Helper()
	if Whole() {
		return list
	}
	seed := Number(t)
	t.Logf("%s=%d: one in %d of %d", Seed, seed, several, len(list))
	return pick(seed, t.Name(), min(several, len(list)), list)
}

// Turn reports whether what takes long for the sake of a single element is to run: always, or with one seed in several.
func Turn(t testing.TB, several int) bool {
	t.Helper()
	return Whole() || len(pick(Number(t), t.Name(), several, []bool{true})) == 1
}

// pick takes one in several, from a start that the name and the seed give. With the next seed it takes their neighbours. Of a
// list that is shorter, it takes none with some seeds.
func pick[T any](seed uint64, name string, several int, list []T) (some []T) {
	if len(list) == 0 {
		return nil
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	step := uint64(several)
	for i := (hash.Sum64()%step + seed%step) % step; i < uint64(len(list)); i += step {
		some = append(some, list[i])
	}
	return some
}

// Tests has a test binary run one in several of its tests and fuzz tests, and those that always names. One with fewer tests runs
// none of them with some seeds. TestMain calls it before m.Run. A run that names its tests, with -run or -skip, runs those. It
// panics where the tests cannot be told.
func Tests(several int, always ...string) {
	if Whole() || slices.ContainsFunc(os.Args[1:], ownChoice) {
		return
	}
	if err := skipOthers(several, always); err != nil {
		panic(err)
	}
}

func skipOthers(several int, always []string) error {
	seed, err := number()
	if err != nil {
		return err
	}
	out, err := exec.Command(os.Args[0], "-test.list=^(Test|Fuzz)").Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	all := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return slices.Contains(always, name)
	})
	some := pick(seed, filepath.Base(os.Args[0]), several, all)
	fmt.Printf("%s=%d: %d of %d tests: %s\n", Seed, seed, len(some), len(all), strings.Join(some, " "))
	var others []string
	for _, name := range all {
		if !slices.Contains(some, name) {
			others = append(others, regexp.QuoteMeta(name))
		}
	}
	return flag.Set("test.skip", "^("+strings.Join(others, "|")+")$")
}

// choices are the flags of a test binary that say which tests it is to run.
var choices = []string{"-test.run", "-test.skip", "-test.list", "-test.bench", "-test.fuzz"}

// ownChoice reports whether an argument of a test binary is one of them; its value may be the next argument.
func ownChoice(arg string) bool {
	name, value, apart := strings.Cut(arg, "=")
	return slices.Contains(choices, name) && (value != "" || !apart)
}
