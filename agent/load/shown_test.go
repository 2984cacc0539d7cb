package load

import (
	"strings"
	"testing"
)

// An error shows the beginning of a statement, and no literal of it.
func TestWhatIsShownOfAStatement(t *testing.T) {
	for sql, want := range map[string]string{
		`ALTER ROLE a PASSWORD 'secret';`:                          `ALTER ROLE a PASSWORD '...';`,
		`ALTER ROLE a PASSWORD 'it''s secret' VALID UNTIL 'b';`:    `ALTER ROLE a PASSWORD '...' VALID UNTIL '...';`,
		`ALTER ROLE a PASSWORD E'\'secret' ;`:                      `ALTER ROLE a PASSWORD '...' ;`,
		"ALTER ROLE a PASSWORD U&'secret'\n'secret';":              `ALTER ROLE a PASSWORD U&'...' '...';`,
		`ALTER ROLE a PASSWORD $b$secret'$$$b$;`:                   `ALTER ROLE a PASSWORD $$...$$;`,
		"ALTER ROLE a -- secret\n /* secret */ PASSWORD\t'secret'": `ALTER ROLE a PASSWORD '...'`,
		`CREATE TABLE "it's" (b int DEFAULT 1.5, c text[]);`:       `CREATE TABLE "it's" (b int DEFAULT 1.5, c text[]);`,
		`SELECT $1;`: `SELECT $1;`,
		"CREATE FUNCTION f() AS $$" + strings.Repeat("secret ", 99) + "$$ COST 1;": "CREATE FUNCTION f() AS $$...$$ COST 1;",
		"CREATE TABLE " + strings.Repeat("ä", 99) + " ();":                         "CREATE TABLE " + strings.Repeat("ä", 53) + "...",
	} {
		if got := shown([]byte(sql)); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s\nis shown as\n%s\nand not\n%s", sql, got, want)
		}
	}
}
