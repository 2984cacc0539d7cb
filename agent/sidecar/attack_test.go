package sidecar_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/sidecar"
)

// traps puts a function that fails in the agent's sessions wherever PostgreSQL could call it, on things of several owners.
const traps = `SET SESSION AUTHORIZATION shop;
GRANT CREATE ON SCHEMA public TO shop_rt;
CREATE FUNCTION public.trap(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET work_mem = '1MB'
  AS $$ BEGIN IF session_user = 'pgherd_agent' THEN RAISE EXCEPTION 'ran as the agent'; END IF; RETURN $1; END $$;
CREATE FUNCTION public.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.trap(1); RETURN NEW; END $$;
CREATE TYPE public.box2 AS (a int);
CREATE FUNCTION public.same(public.box2, public.box2) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT public.trap(1) = 1';
CREATE OPERATOR public.=== (LEFTARG = public.box2, RIGHTARG = public.box2, FUNCTION = public.same);
CREATE AGGREGATE public.sum2(int) (SFUNC = int4pl, STYPE = int, FINALFUNC = public.trap);
SELECT lo_from_bytea(900010, 'x');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION shop_rt;
CREATE DOMAIN public.d AS int DEFAULT public.trap(1) CHECK (public.trap(VALUE) > 0);
CREATE TABLE public.t (a int PRIMARY KEY DEFAULT public.trap(1) CHECK (public.trap(a) > 0), d public.d, box public.box2,
  g int GENERATED ALWAYS AS (public.trap(a)) STORED, FOREIGN KEY (a) REFERENCES public.t);
INSERT INTO public.t (a, d) SELECT n, n FROM generate_series(1, 100) n;
ALTER TABLE public.t ADD CONSTRAINT bad CHECK (public.trap(a) < 0) NOT VALID;
CREATE INDEX folded ON public.t ((a + public.trap(3)));
CREATE INDEX partial ON public.t (public.trap(a)) WHERE public.trap(7) > a AND box === box;
CREATE STATISTICS public.counted ON (public.trap(a) + public.trap(5)), a FROM public.t;
CREATE TRIGGER fire BEFORE INSERT OR UPDATE ON public.t FOR EACH ROW WHEN (public.trap(1) = NEW.a) EXECUTE FUNCTION public.fire();
CREATE RULE other AS ON DELETE TO public.t WHERE public.trap(4) = old.a DO ALSO SELECT public.trap(5);
CREATE POLICY several ON public.t TO shop_ro, shop_c2 USING (public.trap(2) = a) WITH CHECK (public.trap(3) = a);
CREATE POLICY second ON public.t TO shop_c2 USING (public.trap(2) = a);
ALTER TABLE public.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE public.parts (a int, b int) PARTITION BY RANGE ((a + public.trap(1)), public.trap(b));
CREATE TABLE public.part PARTITION OF public.parts FOR VALUES FROM (public.trap(1), 1) TO (public.trap(50), 50);
CREATE VIEW public.v AS SELECT public.trap(6) AS a, d FROM public.t WHERE public.trap(7) > 0;
CREATE MATERIALIZED VIEW public.m AS SELECT public.trap(8) AS a;
CREATE INDEX ON public.m (public.trap(a));
CREATE FUNCTION public.f(int DEFAULT public.trap(9)) RETURNS int BEGIN ATOMIC SELECT public.trap(10); END;
SELECT lo_from_bytea(900011, 'x');
GRANT ALL ON public.t, public.v, public.m, public.parts TO shop_ro, shop_c2 WITH GRANT OPTION;
GRANT UPDATE (a, d) ON public.t TO shop_ro;
GRANT ALL ON DOMAIN public.d TO shop_ro;
GRANT ALL ON FUNCTION public.f TO shop_ro;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO shop_ro;
RESET SESSION AUTHORIZATION;`

// Nothing of the customer's runs, as whomever.
func TestNoCustomersCodeRuns(t *testing.T) {
	w := newWorld(t)
	w.load(traps)
	c, text, r := w.copied(), w.sidecar(), w.standing()
	delete(r.Names, "shop_c2")
	result, err := c.made(text, r, w.largeObjects())
	if err != nil || len(result.DroppedPolicies) != 1 {
		t.Error(result, err)
	}
	c.same(text, r)
	conn := c.connect()
	for _, sql := range []string{`EXPLAIN SELECT * FROM public.t`, `ALTER TABLE public.t VALIDATE CONSTRAINT bad`} {
		if err := conn.Exec(t.Context(), sql).Close(); err == nil || !strings.Contains(err.Error(), "ran as the agent") {
			t.Errorf("%s does not run into the trap: %v", sql, err)
		}
	}
}

// A customer may have dropped the schema that every new database has, and may have made it again, as others are.
func TestWithoutPublic(t *testing.T) {
	for _, script := range []string{`CREATE SCHEMA other; CREATE TABLE other.t (a int)`, `CREATE SCHEMA public`} {
		w := newWorld(t)
		w.load(`DROP SCHEMA public; SET SESSION AUTHORIZATION shop;` + script)
		c, text := w.copied(), w.sidecar()
		check.Must(c.made(text, w.standing(), nil))(t)
		c.same(text, w.standing())
		if diff := cmp.Diff(strings.Split(w.access(), "\n"), strings.Split(c.access(), "\n")); diff != "" {
			t.Error(diff)
		}
	}
}

// What the server refuses is said with its place.
func TestFailureNamesItsPlace(t *testing.T) {
	c := newWorld(t).copied()
	const text = "SET a = 1;\n\n-- Name: t; Type: TABLE; Schema: public; Owner: shop_rt\n\nALTER TABLE public.t OWNER TO shop_rt;\n"
	_, err := c.made(text, c.standing(), nil)
	var at *sidecar.StatementError
	var refused *pgconn.PgError
	if !errors.As(err, &at) || at.Number != 2 || at.Line != 5 || at.Object != "TABLE public.t" ||
		!errors.As(err, &refused) || refused.Code != "42P01" {
		t.Errorf("%v", err)
	}
}

// A copy in which any one statement of the sidecar did not take effect is not equal. Every third is tried.
func TestEveryStatementCounts(t *testing.T) {
	from := everything(t)
	r := sidecar.Roles{Owner: "shop", Names: names()}
	dump := dumpsql.NewReader(strings.NewReader(from.text), dumpsql.Limits{})
	for at, n := 0, 0; ; n++ {
		item, err := dump.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check.NoError(t, err)
		begin, end := at+item.Body, at+len(item.Text)
		at = end
		said := from.text[begin:end]
		if item.Kind != dumpsql.Statement || !counts(said) || n%3 > 0 {
			continue
		}
		without := from.text[:begin] + from.text[end:]
		if found := check.Must(r.Compare(strings.NewReader(from.text), strings.NewReader(without)))(t); len(found) == 0 {
			t.Errorf("nobody misses %s", said)
		}
	}
}

// counts is false for settings of who reads the dump, and for a RESET: the next SET does the same.
func counts(said string) bool {
	for _, start := range []string{"RESET ", "SET ", "SELECT "} {
		if strings.HasPrefix(said, start) && !strings.HasPrefix(said, "SET default_") && !strings.HasPrefix(said, "SET SESSION ") {
			return false
		}
	}
	return true
}

func names() map[string]string {
	m := map[string]string{"pg_monitor": "pg_monitor"}
	for _, role := range customers {
		m[role] = role
	}
	return m
}
