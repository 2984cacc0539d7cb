package sidecar

import (
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
