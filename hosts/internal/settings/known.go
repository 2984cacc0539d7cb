package settings

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// others are the variables of the prefix that are no settings: those that pgherd dev writes for shells, those by which tools and
// crash points are found, and those of this repository's tests.
var others = strings.Fields(`BASE_URL DASHBOARD_LOGIN_URL OPS_URL CA_FILE ACCOUNT_ID API_KEY CI_KEY MAILBOX_DIR
	PG_BINDIR PGBOUNCER PGBACKREST CRASH_AT CRASH_FILE RUN_AS
	SAMPLE UPDATE_GOLDEN RECORD_STATEMENTS FUZZ FUZZ_SEED STRANGERS_SEED ROUNDS PREVIEWS CROWD BENCH_ROWS SCREENSHOTS
	DOWNGRADE OFFSITE`)

// ofTests begin the names of further variables of tests.
var ofTests = []string{Prefix + "TEST_", Prefix + "INSTALL_", Prefix + "MONITORING_"}

// known lists the variables that some command of the program reads. Hosts may share a file of settings, so each knows those of
// all.
func known(root *cobra.Command) map[string]bool {
	names := map[string]bool{}
	for _, name := range others {
		names[Prefix+name] = true
	}
	add := func(f *pflag.Flag) {
		names[Variable(f.Name)] = true
		if !strings.HasSuffix(f.Name, "-file") {
			names[Variable(f.Name)+"_FILE"] = true
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(root)
	return names
}

// checkKnown returns an error for a variable that looks like a setting with another name, and warns of one that is no setting at
// all. Values are not shown.
func checkKnown(cmd *cobra.Command) error {
	names := known(cmd.Root())
	for _, pair := range slices.Sorted(slices.Values(os.Environ())) {
		name, _, _ := strings.Cut(pair, "=")
		of := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !of(Prefix) || slices.ContainsFunc(ofTests, of) || names[name] {
			continue
		}
		if like := nearest(name, names); like != "" {
			return fmt.Errorf("%s is no setting of pgherd: did you mean %s? Correct it, or unset it", name, like)
		}
		cmd.PrintErrf("warning: %s is no setting of pgherd, and is ignored\n", name)
	}
	return nil
}

// nearest is the known name that was probably meant: one that goes on where this one ends, or the one with the fewest letters
// changed, a third of them at most; empty where there is none.
func nearest(name string, names map[string]bool) (found string) {
	least := (len(name)-len(Prefix))/3 + 1
	for _, other := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(other, name+"_") {
			return other
		}
		if apart := distance(name, other); apart < least {
			found, least = other, apart
		}
	}
	return found
}

// distance is how many letters are to be changed, added, left out, or exchanged with the next, to make one text of another.
func distance(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			differ := 1
			if a[i] == b[j] {
				differ = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+differ)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
