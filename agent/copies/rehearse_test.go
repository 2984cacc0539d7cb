package copies

import (
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What a server lacks is told by the manifest alone.
func TestWhatAServerLacks(t *testing.T) {
	t.Parallel()
	db := clustertest.NewDatabase(t).Open(t)
	objects := backup.NewPacker()
	for _, o := range []backup.Object{
		{Kind: "function", Name: `public.json_table(text, text)`}, {Kind: "table", Name: "public.json_value"},
		{Kind: "type", Name: `"my.schema".json`}, {Kind: "function", Name: "json_query(text)", Extension: "x"},
		{Kind: "function", Name: `public."json_value of"()`},
	} {
		check.Must(objects.Add(o))(t)
	}
	m := backup.Manifest{
		ServerVersion: "15.4 (Debian)",
		Contents: backup.Contents{
			Locale: backup.Locale{Encoding: "UTF8", Provider: "libc", Collate: "xx_XX.UTF-8", Ctype: "C"},
			Extensions: []backup.Extension{
				{Name: "nowhere", Version: "1"}, {Name: "citext", Version: "0.1"}, {Name: "plpgsql", Version: "1.0"},
			},
			Objects: check.Must(objects.Objects())(t),
		},
	}
	here := check.Must(pg.One[int](t.Context(), db, version))(t)
	found, whole, err := unfit(t.Context(), db, m, here)
	check.NoError(t, err)
	var got []string
	for _, b := range found {
		got = append(got, string(b.Kind)+" "+b.Object)
		if b.What == "" || b.Remedy == "" {
			t.Errorf("%+v", b)
		}
	}
	want := []string{"extension nowhere", "extension citext"}
	if here >= 17 {
		want = append(want, "word function public.json_table(text, text)", `word type "my.schema".json`)
	}
	want = append(want, "collation xx_XX.UTF-8")
	if !reflect.DeepEqual(got, want) || whole {
		t.Errorf("found %q, whole: %t, want %q", got, whole, want)
	}
	m.Contents.Locale.Collate = "C"
	if _, whole, err := unfit(t.Context(), db, m, here); err != nil || !whole {
		t.Errorf("with a collation: %t, %v", whole, err)
	}
}

// Only what the copy says of the database is a break; of anything else nobody knows.
func TestWhatIsABreak(t *testing.T) {
	t.Parallel()
	statement := func(state string) error {
		return backup.NotVerified(&load.StatementError{Object: "TABLE public.t", Statement: "CREATE", SQLState: state, Message: "no"})
	}
	for name, c := range map[string]struct {
		err  error
		want rehearsal.Kind // empty: it stays an error
	}{
		"a type":      {statement("42704"), rehearsal.Type},
		"a word":      {statement("42601"), rehearsal.Word},
		"a statement": {statement("42703"), rehearsal.Statement},
		"a difference": {
			backup.NotVerified(&unlikeError{[]backup.Difference{{Kind: "rows", Object: "public.t", Want: "1", Got: "2"}}}),
			rehearsal.Different,
		},
		"the schema":     {fault.New(fault.BackupNotVerified, "the restored database is not what was backed up"), rehearsal.Different},
		"a damaged file": {backup.NotVerified(&damagedError{errNoRoom}), ""},
		"no room":        {errNoRoom, ""},
	} {
		found, err := broken(c.err, true)
		switch {
		case c.want == "" && (err == nil || len(found) > 0), c.want != "" && (err != nil || len(found) != 1 || found[0].Kind != c.want):
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	if found, err := broken(statement("42601"), false); err != nil || found[0].Kind != rehearsal.Statement {
		t.Errorf("a word of an older server: %+v, %v", found, err)
	}
	if found, err := broken(nil, true); err != nil || len(found) > 0 {
		t.Errorf("nothing: %+v, %v", found, err)
	}
}

var errNoRoom = fault.New(fault.BackupStorageFull, "no room")

func TestBareNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a": "a", "public.a": "a", "public.a(text, b.c)": "a", `"x.y"."z (1"(int)`: "z (1", `"q""r".s`: "s",
	} {
		if got := bareName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
