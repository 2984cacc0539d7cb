package sidecar

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

var testRoles = Roles{Owner: "shop", Names: map[string]string{"shop": "shop", "rt": "rt2", `x "TO" y`: `x "TO" z`}}

// planned are the steps that a sidecar comes to.
func planned(text string, r Roles) (steps []step, err error) {
	p := newPlanner(r, 0, "db", func(s step) error {
		steps = append(steps, s)
		return nil
	})
	if err := newSource(strings.NewReader(text)).each(p.statement); err != nil {
		return nil, err
	}
	return steps, p.end()
}

func TestPlanned(t *testing.T) {
	const header = "-- Name: t; Type: TABLE; Schema: public; Owner: shop\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"what belongs to the owner": {`ALTER TABLE public.t OWNER TO shop; ALTER TABLE public.t OWNER TO gone;`, nil},
		"others are lent what they need": {`ALTER FUNCTION a."B b"(x.y, "any name" integer[], VARIADIC z text) OWNER TO rt;`, []string{
			`GRANT USAGE, CREATE ON SCHEMA "a" TO "rt2" -- shop`, `GRANT USAGE, CREATE ON SCHEMA "x" TO "rt2" -- shop`,
			`ALTER FUNCTION a."B b"(x.y, "any name" integer[], VARIADIC z text) OWNER TO "rt2"`,
			`REVOKE USAGE, CREATE ON SCHEMA "x" FROM "rt2" -- shop`, `REVOKE USAGE, CREATE ON SCHEMA "a" FROM "rt2" -- shop`,
		}},
		"nothing in their own schemas": {`ALTER SCHEMA a OWNER TO rt; ALTER OPERATOR a.<-> (a.b, NONE) OWNER TO rt;`, []string{
			`ALTER SCHEMA a OWNER TO "rt2"`, `ALTER OPERATOR a.<-> (a.b, NONE) OWNER TO "rt2"`,
		}},
		"publications": {`ALTER PUBLICATION "p ""TO""" OWNER TO "x ""TO"" y";`, []string{
			`GRANT CREATE ON DATABASE "db" TO "x ""TO"" z"`, `ALTER PUBLICATION "p ""TO""" OWNER TO "x ""TO"" z"`,
			`REVOKE CREATE ON DATABASE "db" FROM "x ""TO"" z"`,
		}},
		"a policy": {`CREATE POLICY "p TO x" ON s.t AS RESTRICTIVE FOR SELECT TO gone, rt, shop USING ((a = ' TO gone'));`,
			[]string{`ALTER POLICY "p TO x" ON s.t TO "rt2", "shop"`}},
		"a policy of nobody":    {`CREATE POLICY p ON s.t TO gone WITH CHECK (true);`, []string{`DROP POLICY p ON s.t`}},
		"a policy of everybody": {`CREATE POLICY p ON s.t USING (("TO" IS NULL));`, nil},
		"grants as the owner": {header + `GRANT SELECT,UPDATE("c ""TO""") ON TABLE public.t TO rt WITH GRANT OPTION;
			SET SESSION AUTHORIZATION rt;` + "\n" + `GRANT SELECT ON TABLE public.t TO PUBLIC; RESET SESSION AUTHORIZATION;`, []string{
			`GRANT SELECT, UPDATE("c ""TO""") ON TABLE public.t TO "rt2" WITH GRANT OPTION -- shop`,
			`GRANT USAGE, CREATE ON SCHEMA "public" TO "rt2" -- shop`,
			`GRANT SELECT ON TABLE public.t TO PUBLIC -- rt2`,
			`REVOKE USAGE, CREATE ON SCHEMA "public" FROM "rt2" -- shop`,
		}},
		"all of a table of PostgreSQL 17": {"-- Dumped from database version 17.10 (Debian)\nSET a = 1;\n" + header +
			`REVOKE ALL ON TABLE public.t FROM shop;`, []string{
			`REVOKE SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER, MAINTAIN ON TABLE public.t FROM "shop" -- shop`,
		}},
		"what an object's comment says of a version is not about the server": {"SET a = 1;\n" +
			"-- Dumped from database version 17.10\n" + header + `REVOKE ALL ON TABLE public.t FROM shop;`, []string{
			`REVOKE SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON TABLE public.t FROM "shop" -- shop`,
		}},
		"schemas last": {"-- Name: s; Type: ACL; Schema: -; Owner: shop\n" + `GRANT ALL ON SCHEMA s TO rt;` +
			"\n" + header + `REVOKE ALL ON TABLE s.t FROM shop;`, []string{
			`REVOKE SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON TABLE s.t FROM "shop" -- shop`,
			`GRANT USAGE, CREATE ON SCHEMA s TO "rt2" -- shop`,
		}},
		"default privileges": {`ALTER DEFAULT PRIVILEGES FOR ROLE rt IN SCHEMA "s s" GRANT SELECT ON TABLES TO shop WITH GRANT OPTION;
			ALTER DEFAULT PRIVILEGES FOR ROLE shop REVOKE ALL ON FUNCTIONS FROM PUBLIC;
			ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON LARGE OBJECTS TO rt;
			ALTER DEFAULT PRIVILEGES FOR ROLE gone GRANT SELECT ON TABLES TO shop;
			ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT SELECT ON TABLES TO gone;`, []string{
			`ALTER DEFAULT PRIVILEGES FOR ROLE "rt2" IN SCHEMA "s s" GRANT SELECT ON TABLES TO "shop" WITH GRANT OPTION`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "shop" REVOKE ALL ON FUNCTIONS FROM PUBLIC`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "shop" GRANT ALL ON LARGE OBJECTS TO "rt2"`,
		}},
		"everything else": {`SET lock_timeout = 0; SELECT pg_catalog.set_config('search_path', '', false);
			CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ ALTER TABLE t OWNER TO rt; $$; ALTER TABLE ONLY s.t ADD CHECK (owner);
			COMMENT ON TABLE s.t IS 'GRANT ALL ON s.t TO rt;';`, nil},
	} {
		steps, err := planned(c.text, testRoles)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, s := range steps {
			if s.as != "" {
				s.sql += " -- " + s.as
			}
			got = append(got, s.sql)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// refused are sidecars with something that pg_dump does not write so. None comes to any step.
var refused = []string{
	`SECURITY LABEL FOR x ON TABLE s.t IS 'secret';`, `DROP TABLE s.t;`, `DO $$ BEGIN END $$;`, `SELECT s.f();`,
	`SELECT pg_catalog.pg_sleep(1);`, `INSERT INTO s.t VALUES (1);`,
	`COPY s.t FROM '/etc/passwd';`, "COPY s.t FROM stdin;\n1\n\\.\n",
	`ALTER TABLE s.t OWNER TO rt, ADD COLUMN x int;`, `ALTER TABLE s.t ADD COLUMN x int, OWNER TO rt;`,
	`ALTER TABLE s.t OWNER TO PUBLIC;`, `ALTER TABLE s.t OWNER TO CURRENT_USER;`, `ALTER TABLE s.t OWNER TO "rt" "x";`,
	`ALTER TABLE OWNER TO rt;`, `ALTER TABLE s.t RENAME TO x OWNER TO rt;`, `ALTER EVENT TRIGGER e OWNER TO rt;`,
	`ALTER FUNCTION s.f(int DEFAULT s.g()) OWNER TO rt;`, `ALTER FUNCTION s.f('x') OWNER TO rt;`, `ALTER FUNCTION s.f OWNER TO rt;`,
	`ALTER FUNCTION s.f(integer OWNER TO rt;`, `ALTER OPERATOR s.x (integer, integer) OWNER TO rt;`,
	`ALTER DATABASE db OWNER TO rt;`, `ALTER SYSTEM OWNER TO rt;`, `ALTER TABLE s.U&"\0061" OWNER TO rt;`,
	`GRANT rt TO shop;`, `GRANT rt, shop TO x WITH ADMIN OPTION;`, `GRANT ALL ON DATABASE db TO rt;`,
	`GRANT ALL ON TABLE s.t, s.u TO rt;`,
	`GRANT ALL ON ALL TABLES IN SCHEMA s TO rt;`, `GRANT SELECT (a, b) ON TABLE s.t TO rt;`, `GRANT ALL ON TABLE s.t TO rt, shop;`,
	`GRANT ALL ON TABLE s.t TO rt WITH GRANT OPTION GRANTED BY shop;`, `GRANT ALL ON PARAMETER x TO rt;`,
	`GRANT SELECT ON TABLE s.t FROM rt;`, `REVOKE SELECT ON TABLE s.t FROM rt CASCADE;`,
	`REVOKE GRANT OPTION FOR ALL ON TABLE s.t FROM rt;`,
	`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO rt;`, `ALTER DEFAULT PRIVILEGES FOR ROLE a, b GRANT ALL ON TABLES TO rt;`,
	`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON LARGE TABLES TO rt;`,
	`CREATE POLICY p ON s.t TO CURRENT_ROLE USING (true);`, `CREATE POLICY p ON s.t TO rt; shop;`, `CREATE POLICY p TO rt;`,
	`SET SESSION AUTHORIZATION DEFAULT;`, `SET SESSION AUTHORIZATION 'rt';`, "\\! id\n", `GRANT SELECT ON TABLE s.t TO rt`,
}

func TestRefused(t *testing.T) {
	for _, text := range refused {
		err := Check(strings.NewReader("SET a = 1;\n" + text))
		var statement *StatementError
		var syntax *dumpsql.SyntaxError
		if !errors.As(err, &statement) && !errors.As(err, &syntax) {
			t.Errorf("%s: %v", text, err)
		}
		if statement != nil && (statement.Number < 2 || statement.Line < 2) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whatever stands in a sidecar, what is carried out of it are statements that call nothing of a customer's.
func FuzzParse(f *testing.F) {
	for _, text := range refused {
		f.Add(text)
	}
	for _, text := range []string{
		`ALTER OPERATOR a.<-> (a.b, NONE) OWNER TO rt;`, `ALTER AGGREGATE a.b(x ORDER BY VARIADIC "any") OWNER TO "x ""TO"" y";`,
		`GRANT SELECT,UPDATE("c ""TO""") ON TABLE public.t TO rt WITH GRANT OPTION;`, `REVOKE ALL ON FUNCTION a.f(*) FROM PUBLIC;`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE rt IN SCHEMA "s s" GRANT SELECT ON TABLES TO shop WITH GRANT OPTION;`,
		`CREATE POLICY "p TO x" ON s.t AS RESTRICTIVE FOR SELECT TO gone, rt, shop USING ((a = ' TO gone'));`,
		`ALTER OPERATOR CLASS a.b USING btree OWNER TO rt;`, "ALTER TABLE/**/a--\n.b OWNER TO rt;",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := planned(text, Roles{same: true})
		if err != nil {
			return
		}
		for _, s := range steps {
			if !bare(s.sql) {
				t.Errorf("%q comes to %q", text, s.sql)
			}
		}
	})
}

// bare reports whether a text is one statement of names, keywords and symbols, without strings and comments.
func bare(sql string) bool {
	r := dumpsql.NewReader(strings.NewReader(sql+";"), dumpsql.Limits{})
	item, err := r.Next()
	if err != nil || item.Kind != dumpsql.Statement || len(item.Text) != len(sql)+1 {
		return false
	}
	end := 0
	for at, text := range dumpsql.Tokens([]byte(sql)) {
		if strings.Trim(sql[end:at], " ") != "" || strings.ContainsAny(text[:1], `'$`) {
			return false
		}
		end = at + len(text)
	}
	return end == len(sql)
}
