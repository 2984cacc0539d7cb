package load

import (
	"slices"
	"testing"
)

// A constraint NOT NULL of a table is set after the table is made, at a server that does not know such constraints.
func TestNotNullAtOlderServers(t *testing.T) {
	for sql, want := range map[string][]string{
		"CREATE TABLE s.heir (\n    NOT NULL id,\n    extra integer DEFAULT (1 + 2)\n)\nINHERITS (s.t);": {
			"CREATE TABLE s.heir (\n    extra integer DEFAULT (1 + 2)\n)\nINHERITS (s.t);",
			"ALTER TABLE ONLY s.heir ALTER COLUMN id SET NOT NULL",
		},
		"CREATE UNLOGGED TABLE s.\"he(ir\" (\n    a integer,\n    CONSTRAINT \"x, y\" NOT NULL \"b, c\"\n)\nINHERITS (s.t);": {
			"CREATE UNLOGGED TABLE s.\"he(ir\" (\n    a integer)\nINHERITS (s.t);",
			"ALTER TABLE ONLY s.\"he(ir\" ALTER COLUMN \"b, c\" SET NOT NULL",
		},
		"CREATE TABLE s.heir (\n    NOT NULL a,\n    NOT NULL b\n)\nINHERITS (s.t);": {
			"CREATE TABLE s.heir ()\nINHERITS (s.t);",
			"ALTER TABLE ONLY s.heir ALTER COLUMN a SET NOT NULL", "ALTER TABLE ONLY s.heir ALTER COLUMN b SET NOT NULL",
		},
		"CREATE TABLE s.heir (\n    NOT NULL id NO INHERIT,\n    a integer CONSTRAINT x NOT NULL\n)\nINHERITS (s.t);": nil,
		"CREATE TABLE s.heir (\n    \"not\" integer[],\n    CHECK ((NOT (id IS NULL)))\n)\nINHERITS (s.t);":           nil,
		"CREATE TABLE s.t (\n    NOT NULL id\n);":                                                          nil,
		"CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT 'TABLE (NOT NULL a) INHERITS (b)' $$;": nil,
	} {
		if want == nil {
			want = []string{sql}
		}
		for version, want := range map[string][]string{
			"16.14 (Debian)": want, "17.6": want, "18beta1": {sql}, "18.1": {sql}, "": {sql},
		} {
			if got := understood(sql, version); !slices.Equal(got, want) {
				t.Errorf("on %s: %q, want %q", version, got, want)
			}
		}
	}
}
