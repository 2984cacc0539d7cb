package sidecar

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// across are texts of pg_dump of the older version, each with what the newer one writes of a database that was made from it.
var across = map[string]struct{ older, newer string }{
	"16 and 18, NOT NULL of an inherited column": {
		"CREATE TABLE s.heir (\n    d integer,\n    CONSTRAINT c CHECK ((d > 1))\n)\nINHERITS (s.grand, s.uncle);\n" +
			"ALTER TABLE ONLY s.heir ALTER COLUMN c SET NOT NULL;",
		"CREATE TABLE s.heir (\n    d integer,\n    CONSTRAINT c CHECK ((d > 1)),\n    NOT NULL c\n)\nINHERITS (s.grand, s.uncle);",
	},
	"16 and 18, NOT NULL of an heir and of its parents": {
		"CREATE TABLE s.p (\n    id integer NOT NULL\n);\nCREATE TABLE s.q (\n    a integer\n)\nINHERITS (s.p);\n" +
			"CREATE TABLE s.heir (\n    b integer\n)\nINHERITS (s.other, s.q);",
		"CREATE TABLE s.p (\n    id integer CONSTRAINT named NOT NULL\n);\nCREATE TABLE s.q (\n    a integer\n)\nINHERITS (s.p);\n" +
			"CREATE TABLE s.heir (\n    CONSTRAINT named NOT NULL id,\n    b integer\n)\nINHERITS (s.other, s.q);",
	},
	"17 and 18, NOT NULL with a name": {
		"CREATE UNLOGGED TABLE s.t (\n    a integer DEFAULT 1 NOT NULL,\n    \"b c\" text\n);\n" +
			"ALTER TABLE ONLY s.t ALTER COLUMN \"b c\" SET NOT NULL;",
		"CREATE UNLOGGED TABLE s.t (\n    a integer DEFAULT 1 CONSTRAINT before NOT NULL,\n    \"b c\" text,\n" +
			"    CONSTRAINT named NOT NULL \"b c\"\n);",
	},
	"16 and 17, an owner without privileges": {
		"REVOKE ALL ON TABLE s.child FROM shop;\nGRANT TRIGGER ON TABLE s.child TO PUBLIC;",
		"REVOKE ALL ON TABLE s.child FROM shop;\nGRANT MAINTAIN ON TABLE s.child TO shop;\nGRANT TRIGGER ON TABLE s.child TO PUBLIC;",
	},
	"17 and 18, default privileges of large objects": {
		"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON SEQUENCES TO rt2;",
		"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON SEQUENCES TO rt2;\n" +
			"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON LARGE OBJECTS TO rt2;",
	},
	"16 and 18, default privileges": {
		"ALTER DEFAULT PRIVILEGES FOR ROLE shop REVOKE ALL ON TABLES FROM shop;\n" +
			"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON SEQUENCES TO rt2;",
		"ALTER DEFAULT PRIVILEGES FOR ROLE shop REVOKE ALL ON TABLES FROM shop;\n" +
			"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT MAINTAIN ON TABLES TO shop;\n" +
			"ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT ALL ON SEQUENCES TO rt2;",
	},
}

// dumped is a dump of a server of a major version.
func dumped(major, text string) string {
	return "--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version " + major + ".1\n\nSET a = 1;\n\n" +
		"-- Name: x; Type: TABLE; Schema: s; Owner: shop\n\n" + text + "\n"
}

// What the older one of two versions does not know is no difference, in whichever direction a database goes. Between databases of
// one version, it is one.
func TestWhatTheOlderVersionDoesNotKnow(t *testing.T) {
	r := Roles{Owner: "shop", same: true}
	differ := func(from, fromText, to, toText string) int {
		return len(check.Must(r.Compare(strings.NewReader(dumped(from, fromText)), strings.NewReader(dumped(to, toText))))(t))
	}
	for name, c := range across {
		older, newer := name[:2], name[7:9]
		if differ(older, c.older, newer, c.newer) > 0 || differ(newer, c.newer, older, c.older) > 0 {
			t.Errorf("%s: a difference", name)
		}
		if differ(newer, c.older, newer, c.newer) == 0 {
			t.Errorf("%s: no difference where both are of %s", name, newer)
		}
		if lost := strings.Replace(c.older, "NOT NULL", "DEFAULT 2", 1); lost != c.older && differ(older, lost, newer, c.newer) == 0 {
			t.Errorf("%s: what is lost is no difference", name)
		}
	}
}

// What a server does not know is left out of a copy, and told, unless its owner can do the same there without.
func TestWhatAnOlderServerLacks(t *testing.T) {
	const about = "-- Name: t; Type: TABLE; Schema: s; Owner: shop\n"
	const defaults = "ALTER DEFAULT PRIVILEGES FOR ROLE shop "
	for text, c := range map[string]struct {
		on17, on16 string // the step, if there is one
		lacked     []string
	}{
		about + "GRANT SELECT,MAINTAIN ON TABLE s.t TO rt;": {
			`GRANT SELECT, MAINTAIN ON TABLE s.t TO "rt2"`, `GRANT SELECT ON TABLE s.t TO "rt2"`, []string{theMaintain},
		},
		about + "GRANT MAINTAIN ON TABLE s.t TO rt;":    {`GRANT MAINTAIN ON TABLE s.t TO "rt2"`, "", []string{theMaintain}},
		about + "REVOKE MAINTAIN ON TABLE s.t FROM rt;": {`REVOKE MAINTAIN ON TABLE s.t FROM "rt2"`, "", nil},
		about + "GRANT MAINTAIN ON TABLE s.t TO shop;":  {`GRANT MAINTAIN ON TABLE s.t TO "shop"`, "", nil},
		defaults + "GRANT MAINTAIN ON TABLES TO rt;": {
			`ALTER DEFAULT PRIVILEGES FOR ROLE "shop" GRANT MAINTAIN ON TABLES TO "rt2"`, "", []string{theMaintain},
		},
		defaults + "REVOKE ALL ON TABLES FROM rt;": {
			`ALTER DEFAULT PRIVILEGES FOR ROLE "shop" REVOKE ALL ON TABLES FROM "rt2"`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "shop" REVOKE ALL ON TABLES FROM "rt2"`, nil,
		},
		defaults + "GRANT SELECT ON LARGE OBJECTS TO rt;": {"", "", []string{largeDefaults}},
	} {
		for server, want := range map[major]string{17: c.on17, 16: c.on16} {
			var steps []string
			p := newPlanner(testRoles, server, "db", func(s step) error {
				steps = append(steps, s.sql)
				return nil
			})
			check.NoError(t, newSource(strings.NewReader(dumped("18", text))).each(p.statement))
			lacked := c.lacked
			if want != "" && want == c.on17 {
				lacked = nil
			}
			if got := strings.Join(steps, "; "); got != want || !slices.Equal(p.lacked, lacked) {
				t.Errorf("%s on %d: %q, lacks %q; want %q, %q", text, server, got, p.lacked, want, lacked)
			}
		}
	}
}
