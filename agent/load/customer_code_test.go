package load_test

import (
	"strings"

	"github.com/lib/pq"
)

func (c *customer) kindsOfCode() []func() {
	return []func(){
		c.body, c.body, c.atomic, c.atomic, c.changing, c.procedure, c.result, c.view, c.view, c.circle, c.grouped, c.rule, c.trigger,
		c.late, c.instead, c.policy, c.language,
	}
}

// body makes functions whose bodies nobody has checked.
func (c *customer) body() {
	mark := c.pick("$$", "$_$", "$body$", "$é_1$")
	text := strings.ReplaceAll(c.inside(), "$", "")
	name := c.routine()
	c.do("CREATE FUNCTION %s(a text DEFAULT %s, %s int DEFAULT 1) RETURNS text LANGUAGE %s %s AS %s%s;%s",
		name, c.text(), c.name(), c.pick("sql", "plpgsql"),
		c.pick("", "SET search_path TO 'a;', \"B\"", "COST 7 STABLE STRICT SECURITY DEFINER", "LEAKPROOF",
			"SET odd.setting TO "+c.text(), `SET session_preload_libraries TO 'a b', 'c;', "D"`), mark, text, mark)
	c.has("FUNCTION", name)
	c.do("CREATE FUNCTION %s() RETURNS text LANGUAGE sql AS %s", c.qualified(),
		pq.QuoteLiteral(c.inside()+c.pick("$$", "$_$", "x", "$_", "$_$ $_X$", "$")))
}

func (c *customer) atomic() {
	t, name := c.some(), c.routine()
	c.do(`CREATE FUNCTION %s(begin int, b text) RETURNS bigint LANGUAGE sql BEGIN ATOMIC
		SELECT CASE WHEN begin > 0 THEN CASE b WHEN %s THEN 1 ELSE 2 END ELSE 0 END AS "end" FROM %s AS "case" WHERE "case".%s <> %s;
		SELECT count(*) AS "begin;" FROM %s; END`, name, c.text(), t.name, t.columns[0], c.text(), c.some().name)
	c.has("FUNCTION", name)
}

// changing makes a function whose statements change something.
func (c *customer) changing() {
	t, to, name := c.some(), c.some(), c.qualified()
	c.do(`CREATE FUNCTION %[1]s(VARIADIC a text[] DEFAULT ARRAY[%[2]s]) RETURNS void LANGUAGE sql BEGIN ATOMIC
		INSERT INTO %[3]s (%[4]s, kind) VALUES (%[5]s, CASE %[6]s WHEN a[1] THEN '--' ELSE 'a;' END) ON CONFLICT DO NOTHING;
		UPDATE %[7]s AS "end" SET %[8]s = CASE WHEN "case;" IS NULL THEN %[5]s ELSE (SELECT CASE WHEN true THEN %[6]s END) END
			FROM (VALUES (%[5]s)) AS "atomic" ("case;") WHERE "end".id = ANY (ARRAY(SELECT 1 UNION ALL SELECT 2));
		WITH "begin atomic;" AS MATERIALIZED (DELETE FROM %[3]s WHERE id < 0 RETURNING id)
			SELECT max(CASE id WHEN 1 THEN %[6]s END) OVER (PARTITION BY id) FROM "begin atomic;"; %[9]s END`,
		name, c.text(), t.name, t.columns[0], c.text(), c.text(), to.name, to.columns[0], c.pick("", "VALUES (1);", ";;"))
	c.has("FUNCTION", name)
}

func (c *customer) procedure() {
	name := c.routine()
	c.do(`CREATE PROCEDURE %s(%s text) LANGUAGE sql %s`, name, c.name(),
		c.pick("BEGIN ATOMIC END", "BEGIN ATOMIC SELECT 1; SELECT "+c.text()+"; END", "AS "+c.text()))
	c.has("PROCEDURE", name)
}

// result makes functions that are an expression, with odd columns in their result, and of the server's own.
func (c *customer) result() {
	name := c.routine()
	c.do(`CREATE FUNCTION %s(a text, OUT %s text) LANGUAGE sql IMMUTABLE PARALLEL SAFE
		RETURN CASE a WHEN %s THEN %s ELSE CASE WHEN a IS NULL THEN 'END;' ELSE a || %s END END`,
		name, c.name(), c.text(), c.text(), c.text())
	c.has("FUNCTION", name)
	c.do(`CREATE FUNCTION %s() RETURNS TABLE (%s text, "end;" int) LANGUAGE sql ROWS 7 AS %s`, c.qualified(), c.name(), c.text())
	c.do(`CREATE FUNCTION %s(text, text) RETURNS text LANGUAGE internal STRICT AS 'textcat'`, c.qualified())
}

func (c *customer) view() {
	t, name := c.some(), c.qualified()
	kind := c.pick("VIEW", "MATERIALIZED VIEW")
	c.do(`CREATE %s %s AS SELECT %s AS %s, %s, list[1:2] AS s, CASE WHEN id > 1 THEN %s ELSE U&'\0061\FF01' END AS c, B'01' AS b,
		INTERVAL '1 day' AS i, id::bigint OPERATOR(pg_catalog.-) (-1) AS n FROM %s WHERE %s <> ALL (list) %s`,
		kind, name, c.text()+"::text", c.name(), t.columns[0], c.text(), t.name, t.columns[0],
		c.pick("", "UNION ALL SELECT "+c.text()+", NULL, NULL, 'c', NULL, NULL, 1"))
	c.hasRelation(kind, name)
	switch {
	case kind != "VIEW":
		c.do(`CREATE INDEX ON %s (c)`, name)
	case c.upTo(2) == 1:
		c.do(`ALTER VIEW %s ALTER COLUMN s SET DEFAULT ARRAY[%s]`, name, c.text())
		c.do(`ALTER VIEW %s SET (security_barrier, security_invoker = on)`, name)
	}
}

// circle makes views that are made of each other.
func (c *customer) circle() {
	one, other, column := c.qualified(), c.qualified(), c.name()
	c.do(`CREATE VIEW %s AS SELECT %s::text AS %s, 1 AS b`, one, c.text(), column)
	c.do(`CREATE VIEW %s AS SELECT * FROM %s`, other, one)
	c.do(`CREATE OR REPLACE VIEW %s AS SELECT %s, b FROM %s WHERE %s <> %s`, one, column, other, column, c.text())
	c.hasRelation("VIEW", one)
}

// grouped makes a view that needs a primary key.
func (c *customer) grouped() {
	t, name := c.some(), c.qualified()
	c.do(`CREATE VIEW %s WITH (security_barrier) AS SELECT id, %s, count(*) AS %s FROM ONLY %s GROUP BY id HAVING min(kind) <> %s`,
		name, t.columns[0], c.name(), t.name, c.text())
	c.hasRelation("VIEW", name)
}

func (c *customer) rule() {
	t, to, name := c.some(), c.some(), c.name()
	c.do(`CREATE RULE %s AS ON UPDATE TO %s DO ALSO (
		INSERT INTO %s (%s) VALUES (%s); DELETE FROM %[3]s WHERE %[4]s = %[5]s; NOTIFY "a;", %[5]s)`,
		name, t.name, to.name, to.columns[0], c.text())
	c.hasBare("RULE", name+" ON "+t.name)
	c.do(`CREATE RULE %s AS ON DELETE TO %s WHERE old.%s <> %s DO INSTEAD %s`, c.name(), t.name, t.columns[0], c.text(),
		c.pick("NOTHING", "UPDATE "+to.name+" SET kind = CASE WHEN old.id = 1 THEN NULL ELSE '--' END WHERE id = old.id"))
	if c.upTo(3) == 1 {
		c.do(`ALTER TABLE %s DISABLE RULE %s`, t.name, name)
	}
}

// triggered makes a function for a trigger.
func (c *customer) triggered() string {
	f := c.qualified()
	c.do(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END;$$`, f)
	return f
}

func (c *customer) trigger() {
	t, f, name := c.some(), c.triggered(), c.name()
	c.do(`CREATE TRIGGER %s BEFORE UPDATE OF %s ON %s FOR EACH ROW WHEN (NEW.%s <> %s) EXECUTE FUNCTION %s(%s, 'a\b;')`,
		name, t.columns[0], t.name, t.columns[0], c.text(), f, c.text())
	c.hasBare("TRIGGER", name+" ON "+t.name)
	c.do(`ALTER TABLE %s %s TRIGGER %s`, t.name, c.pick("ENABLE", "DISABLE", "ENABLE ALWAYS", "ENABLE REPLICA"), name)
}

// late makes triggers that run after statements and transactions.
func (c *customer) late() {
	t, f := c.some(), c.triggered()
	c.do(`CREATE CONSTRAINT TRIGGER %s AFTER UPDATE ON %s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION %s()`, c.name(), t.name, f)
	c.do(`CREATE TRIGGER %s AFTER UPDATE ON %s REFERENCING OLD TABLE AS %s NEW TABLE AS "begin;" FOR EACH STATEMENT
		EXECUTE FUNCTION %s(%s)`, c.name(), t.name, c.name(), f, c.text())
}

// instead makes a view that can be written to.
func (c *customer) instead() {
	f, view := c.triggered(), c.qualified()
	c.do(`CREATE VIEW %s (%s, b) AS SELECT %s::text, %s::text`, view, c.name(), c.text(), c.text())
	c.do(`CREATE TRIGGER %s INSTEAD OF INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s(%s)`, c.name(), view, f, c.text())
	c.hasRelation("VIEW", view)
}

func (c *customer) policy() {
	t, name := c.some(), c.name()
	c.do(`CREATE POLICY %s ON %s AS %s TO PUBLIC, "other; -- owner" USING (%s <> %s) WITH CHECK (%[4]s <> ' TO x USING (')`,
		name, t.name, c.pick("PERMISSIVE", "RESTRICTIVE"), t.columns[0], c.text())
	c.hasBare("POLICY", name+" ON "+t.name)
	c.do(`CREATE POLICY %s ON %s FOR %s %s`, c.name(), t.name, c.pick("INSERT", "ALL"),
		c.pick("WITH CHECK ("+t.columns[0]+" = "+c.text()+")", `TO "other; -- owner", current_user WITH CHECK (id IN (SELECT 1))`))
	c.do(`ALTER TABLE %s %s ROW LEVEL SECURITY`, t.name, c.pick("ENABLE", "FORCE"))
}

// language makes what a customer cannot, but a dump may have.
func (c *customer) language() {
	name, handler := c.name(), c.qualified()
	c.do(`CREATE FUNCTION %s() RETURNS language_handler LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_call_handler'`, handler)
	c.do(`CREATE TRUSTED LANGUAGE %s HANDLER %s`, name, handler)
	c.has("LANGUAGE", name)
	c.do(`CREATE FUNCTION %s() RETURNS int LANGUAGE %s AS %s`, c.qualified(), name, c.text())
}
