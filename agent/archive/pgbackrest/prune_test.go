package pgbackrest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// realManifest is that of an incremental copy, of a server with a tablespace and the databases app (16385), a=b "q" \c (16386),
// other (16387, in the tablespace) and large (16388). Most files of all but postgres were removed before.
func realManifest(t testing.TB) string {
	t.Helper()
	return string(check.Must(os.ReadFile("testdata/backup.manifest"))(t))
}

func pruning(text string, databases ...uint32) *manifest {
	m := newManifest(databases)
	for line := range strings.Lines(text) {
		m.line(strings.TrimSuffix(line, "\n"))
	}
	return m
}

// signed is a text with its checksum.
func signed(text string) string {
	m := pruning(text)
	return text + "\n[backrest]\nbackrest-checksum=" + m.original.sum() + "\n"
}

func TestARealManifest(t *testing.T) {
	text := realManifest(t)
	m := pruning(text, 16387)
	pruned := string(check.Must(m.pruned())(t))
	leftOut := regexp.MustCompile("^pg_data/base/(16385|16386|16388)/.*=")
	want := slices.DeleteFunc(strings.Split(text, "\n"), leftOut.MatchString)
	got := strings.Split(pruned, "\n")
	if checksum := len(got) - 2; strings.HasPrefix(got[checksum], "backrest-checksum=") {
		got[checksum] = want[len(want)-2] // it is compared below
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, and not %d: %s", len(got), len(want), pruned)
	}
	if !slices.Equal(m.holes, []hole{{"base/16388/16389", 1572864}}) {
		t.Error(m.holes)
	}
	if again := string(check.Must(pruning(pruned, 16387).pruned())(t)); again != pruned {
		t.Error("its checksum is another, or there is more to leave out")
	}
}

const smallManifest = `[backrest]
backrest-format=5

[db]
app={"db-id":16385,"db-last-system-id":4}
postgres={"db-id":16384,"db-last-system-id":4}

[target:file]
`

func TestWhatIsLeftOut(t *testing.T) {
	const kept, left = "kept", "left out"
	for line, want := range map[string]string{
		`pg_data/base/16385/1={"size":1048575,"timestamp":7}`:                               left,
		`pg_data/base/16385/1={"size":1048576,"timestamp":7}`:                               "[{base/16385/1 1048576}]",
		`pg_data/base/16385/1={"bni":1,"repo-size":9999999,"size":8192,"timestamp":7}`:      left,
		`pg_data/base/16385/1={"bni":1,"repo-size":8,"size":9999999,"szo":1,"timestamp":7}`: "[{base/16385/1 9999999}]",
		`pg_data/base/16385/PG_VERSION={"bni":1,"size":3,"timestamp":7}`:                    left,
		`pg_data/base/16386/1={"size":9999999,"timestamp":7}`:                               kept, // restored
		`pg_data/base/16384/1={"size":0,"timestamp":7}`:                                     kept, // the server's own
		`pg_data/base/16383/1={"size":0,"timestamp":7}`:                                     kept, // likewise
		`pg_data/base/16387/1={"size":0,"timestamp":7}`:                                     left, // made during the copy
		`pg_data/base/16385={"size":0,"timestamp":7}`:                                       kept,
		`pg_data/base/pgsql_tmp/1={"size":0,"timestamp":7}`:                                 kept,
		`pg_data/global/1262={"size":0,"timestamp":7}`:                                      kept,
		`pg_tblspc/1/PG_16_2/16385/1={"size":0,"timestamp":7}`:                              left,
		`pg_tblspc/1/PG_16_2/16385/1={"size":1048577,"timestamp":7}`:                        "[{pg_tblspc/1/PG_16_2/16385/1 1048577}]",
		`pg_tblspc/1/PG_16_2/16386/1={"size":0,"timestamp":7}`:                              kept,
		`pg_tblspc/../../16385/1={"size":1048577,"timestamp":7}`:                            kept, // it is no path
	} {
		m := pruning(signed(smallManifest+line+"\n"), 16386)
		text, got := string(check.Must(m.pruned())(t)), left
		switch {
		case strings.Contains(text, line):
			got = kept
		case len(m.holes) > 0:
			got = fmt.Sprint(m.holes)
		}
		if got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestManifestsThatAreNotUnderstood(t *testing.T) {
	const file = `pg_data/base/16385/1={"size":0,"timestamp":7}` + "\n"
	if _, err := pruning(signed(smallManifest + file)).pruned(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":                "",
		"without a checksum":     smallManifest + file,
		"changed":                strings.Replace(signed(smallManifest+file), "16385/1", "16385/2", 1),
		"cut off":                signed(smallManifest + file)[:200],
		"of another format":      signed(strings.Replace(smallManifest, "=5", "=6", 1) + file),
		"without databases":      signed("[backrest]\nbackrest-format=5\n[target:file]\n" + file),
		"without a section":      signed(file),
		"a key without a value":  signed(smallManifest + "pg_data\n"),
		"without a size":         signed(smallManifest + `pg_data/base/16385/1={"timestamp":7}` + "\n"),
		"a size that is none":    signed(smallManifest + `pg_data/base/16385/1={"size":"x"}` + "\n"),
		"a database without OID": signed("[backrest]\nbackrest-format=5\n[db]\npostgres={}\n[target:file]\n" + file),
		"more after its end":     signed(smallManifest+file) + "[target:path]\n",
	} {
		if text, err := pruning(text).pruned(); err == nil {
			t.Errorf("%s: it becomes %q", name, text)
		}
	}
}

// What is pruned is a manifest that has nothing more to leave out, and all that is restored.
func FuzzManifest(f *testing.F) {
	f.Add(smallManifest + `pg_data/base/16385/1={"size":0,"timestamp":7}
pg_data/base/16386/1={"size":0}
[a]
"=\={"=":1}`)
	f.Add("[backrest]\nbackrest-format=5\nbackrest-checksum=1\n=\n[]\n[[]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		text = signed(text)
		pruned, err := pruning(text, 16386).pruned()
		if err != nil {
			return
		}
		if again, err := pruning(string(pruned), 16386).pruned(); err != nil || string(again) != string(pruned) {
			t.Errorf("%q becomes %q, and that %q, %v", text, pruned, again, err)
		}
		const whole = "\npg_data/base/16386/"
		if strings.Count(text, whole) != strings.Count(string(pruned), whole) {
			t.Errorf("%q becomes %q", text, pruned)
		}
	})
}
