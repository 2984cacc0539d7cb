package relocate

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/ledger"
)

// Each privilege is granted by its grantor, once that can pass it on.
func TestGrantsOfADatabaseInTheirOrder(t *testing.T) {
	const id = "11111111-1111-4111-8111-111111111111"
	p := switchPlan{Database: ledger.Database{ID: id, Name: "shop"}, of: copyRow{name: "restore_1"}}
	holder := p.holder()
	p.whole.grants = []databaseGrant{
		{"c2", "c3", "CREATE", false}, {"shop", "c2", "CREATE", true}, {holder, "shop", "CREATE", true},
		{holder, "", "TEMPORARY", false}, {"nobody", "c1", "CONNECT", false},
	}
	want := []string{
		`SET LOCAL ROLE "` + holder + `"`, `GRANT CREATE ON DATABASE "restore_1" TO "shop" WITH GRANT OPTION`,
		`SET LOCAL ROLE "` + holder + `"`, `GRANT TEMPORARY ON DATABASE "restore_1" TO PUBLIC`,
		`SET LOCAL ROLE "shop"`, `GRANT CREATE ON DATABASE "restore_1" TO "c2" WITH GRANT OPTION`,
		`SET LOCAL ROLE "c2"`, `GRANT CREATE ON DATABASE "restore_1" TO "c3"`, "RESET ROLE",
	}
	if got := p.grantStatements(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A value is stored as it was, lists of names too.
func TestStatementsOfDatabaseSettings(t *testing.T) {
	for want, s := range map[string]databaseSetting{
		`ALTER DATABASE "restore_1" SET "work_mem" TO '7MB'`:                         {"", "work_mem", "7MB"},
		`ALTER ROLE "a""b" IN DATABASE "restore_1" SET "DateStyle" TO 'SQL, DMY'`:    {`a"b`, "DateStyle", "SQL, DMY"},
		`ALTER DATABASE "restore_1" SET "my"."own" TO 'it''s'`:                       {"", "my.own", "it's"},
		`ALTER DATABASE "restore_1" SET "search_path" TO '$user', 'public', 'a, "b'`: {"", "search_path", `"$user", public, "a, ""b"`},
		`ALTER DATABASE "restore_1" SET "search_path" TO ''`:                         {"", "search_path", `""`},
		`ALTER DATABASE "restore_1" SET "temp_tablespaces" TO ''`:                    {"", "temp_tablespaces", ""},
	} {
		if got := s.statement("restore_1"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
