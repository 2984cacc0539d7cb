package load_test

import "strings"

func (c *customer) kindsOfTypes() []func() {
	return []func(){
		c.domain, c.enum, c.composite, c.rangeType, c.base, c.cast, c.collation, c.conversion, c.aggregate, c.operator, c.operatorClass,
		c.words, c.parser,
	}
}

func (c *customer) domain() {
	name, check := c.qualified(), c.name()
	c.do(`CREATE DOMAIN %s AS text COLLATE "C" DEFAULT %s CONSTRAINT %s CHECK (VALUE <> %s)`, name, c.text(), check, c.text())
	c.do(`ALTER DOMAIN %s ADD CONSTRAINT %s CHECK (VALUE IN (%s, ';')) NOT VALID`, name, c.name(), c.text())
	c.has("DOMAIN", name)
	c.hasBare("CONSTRAINT", check+" ON DOMAIN "+name)
}

func (c *customer) enum() {
	label := func() string { return "'" + strings.ReplaceAll(strings.Trim(c.name(), `"`), "'", "''") + "'" }
	name := c.qualified()
	c.do(`CREATE TYPE %s AS ENUM (%s, %s)`, name, label(), label())
	c.has("TYPE", name)
}

func (c *customer) composite() {
	kind, column := c.qualified(), c.name()
	c.do(`CREATE TYPE %s AS (%s text, %s int)`, kind, column, c.name())
	c.hasBare("COLUMN", kind+"."+column)
	t := c.qualified()
	c.do(`CREATE TABLE %s (a %s, b %s[])`, t, kind, kind)
	c.do(`INSERT INTO %s VALUES (ROW(%s, 1), ARRAY[ROW(%s, 2)::%s])`, t, c.text(), c.text(), kind)
	typed := c.qualified()
	c.do(`CREATE TABLE %s OF %s (%s WITH OPTIONS DEFAULT %s)`, typed, kind, column, c.text())
	c.do(`INSERT INTO %s VALUES (DEFAULT, 1)`, typed)
}

func (c *customer) rangeType() {
	name, t := c.qualified(), c.qualified()
	c.do(`CREATE TYPE %s AS RANGE (SUBTYPE = text, COLLATION = "C", MULTIRANGE_TYPE_NAME = %s)`, name, c.qualified())
	c.has("TYPE", name)
	c.do(`CREATE TABLE %s (a %s)`, t, name)
	c.do(`INSERT INTO %s SELECT ('[' || to_json(%s::text)::text || ',)')::%s`, t, c.text(), name)
}

// base makes a type with functions of its own.
func (c *customer) base() {
	name, in, out, t := c.qualified(), c.qualified(), c.qualified(), c.qualified()
	c.do(`CREATE TYPE %s`, name)
	c.do(`CREATE FUNCTION %s(cstring) RETURNS %s LANGUAGE internal IMMUTABLE STRICT AS 'textin'`, in, name)
	c.do(`CREATE FUNCTION %s(%s) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'`, out, name)
	c.do(`CREATE TYPE %s (INPUT = %s, OUTPUT = %s, LIKE = text, DEFAULT = %s, DELIMITER = ';', CATEGORY = 'U')`,
		name, in, out, c.text())
	c.has("TYPE", name)
	c.do(`CREATE TABLE %s (a %s, b %s[])`, t, name, name)
	c.do(`INSERT INTO %s VALUES (DEFAULT, ARRAY[%s::%s, %s])`, t, c.text(), name, c.text())
}

func (c *customer) cast() {
	name, f := c.qualified(), c.qualified()
	c.do(`CREATE TYPE %s AS ENUM ('a;', 'b')`, name)
	if c.upTo(2) == 1 {
		c.do(`CREATE CAST (%s AS text) WITH INOUT AS ASSIGNMENT`, name)
	} else {
		c.do(`CREATE FUNCTION %s(%s) RETURNS text LANGUAGE sql IMMUTABLE RETURN CASE $1 WHEN 'a;' THEN %s END`, f, name, c.text())
		c.do(`CREATE CAST (%s AS text) WITH FUNCTION %s(%s) AS IMPLICIT`, name, f, name)
	}
	c.hasBare("CAST", "("+name+" AS text)")
}

func (c *customer) collation() {
	name := c.qualified()
	c.do(`CREATE COLLATION %s (LC_COLLATE = 'C', LC_CTYPE = 'POSIX')`, name)
	c.do(`CREATE TABLE %s (a text COLLATE %s DEFAULT (%s COLLATE %[2]s))`, c.qualified(), name, c.text())
	c.hasBare("COLLATION", name)
}

func (c *customer) conversion() {
	name := c.qualified()
	c.do(`CREATE CONVERSION %s FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8`, name)
	c.hasBare("CONVERSION", name)
}

func (c *customer) aggregate() {
	name := c.routine()
	c.do(`CREATE AGGREGATE %s(text) (SFUNC = textcat, STYPE = text, INITCOND = %s)`, name, c.text())
	c.objects = append(c.objects, object{"AGGREGATE " + name + "(text)", "FUNCTION " + name + "(text)"})
	c.do(`CREATE AGGREGATE %s(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '0', MSFUNC = int8inc, MINVFUNC = int8dec, MSTYPE = int8,
		MINITCOND = '0', PARALLEL = SAFE)`, c.qualified())
	c.do(`CREATE AGGREGATE %s(VARIADIC "any" ORDER BY VARIADIC "any") (SFUNC = ordered_set_transition_multi, STYPE = internal,
		FINALFUNC = rank_final, FINALFUNC_EXTRA, HYPOTHETICAL)`, c.qualified())
}

func (c *customer) operator() {
	c.made++
	name := c.pick("<", "=", "!", "&&", "%", "?", "*", "^", "+", "-", "`")
	for n := c.made; n > 0; n /= 4 {
		name += string("@|~#"[n%4])
	}
	schema := c.schemas[c.upTo(len(c.schemas))]
	c.do(`CREATE OPERATOR %s.%s (LEFTARG = text, RIGHTARG = text, FUNCTION = textcat)`, schema, name)
	c.do(`CREATE OPERATOR %s.%s (RIGHTARG = int, FUNCTION = int4um)`, schema, name)
	c.hasBare("OPERATOR", schema+"."+name+" (text, text)")
	c.do(`CREATE VIEW %s AS SELECT %s::text OPERATOR(%s.%s) %s::text AS a, OPERATOR(%[3]s.%[4]s) 1 AS b`,
		c.qualified(), c.text(), schema, name, c.text())
}

func (c *customer) operatorClass() {
	family, class := c.qualified(), c.qualified()
	c.do(`CREATE OPERATOR FAMILY %s USING btree`, family)
	c.do(`CREATE OPERATOR CLASS %s FOR TYPE int4 USING btree FAMILY %s AS OPERATOR 1 <, OPERATOR 3 =,
		FUNCTION 1 btint4cmp(int4, int4)`, class, family)
	c.do(`ALTER OPERATOR FAMILY %s USING btree ADD OPERATOR 1 < (int4, int8),
		FUNCTION 1 (int4, int8) btint48cmp(int4, int8)`, family)
	c.hasBare("OPERATOR CLASS", class+" USING btree")
	c.hasBare("OPERATOR FAMILY", family+" USING btree")
}

func (c *customer) words() {
	dictionary, configuration := c.qualified(), c.qualified()
	c.do(`CREATE TEXT SEARCH DICTIONARY %s (TEMPLATE = synonym, SYNONYMS = 'synonym_sample')`, dictionary)
	c.do(`CREATE TEXT SEARCH CONFIGURATION %s (COPY = simple)`, configuration)
	c.do(`ALTER TEXT SEARCH CONFIGURATION %s ALTER MAPPING FOR asciiword, word WITH %s, simple`, configuration, dictionary)
	c.hasBare("TEXT SEARCH DICTIONARY", dictionary)
	c.hasBare("TEXT SEARCH CONFIGURATION", configuration)
}

// parser makes what a customer cannot, but a dump may have.
func (c *customer) parser() {
	name, template := c.qualified(), c.qualified()
	c.do(`CREATE TEXT SEARCH PARSER %s (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end, LEXTYPES = prsd_lextype,
		HEADLINE = prsd_headline)`, name)
	c.do(`CREATE TEXT SEARCH TEMPLATE %s (INIT = dsimple_init, LEXIZE = dsimple_lexize)`, template)
	c.hasBare("TEXT SEARCH PARSER", name)
	c.hasBare("TEXT SEARCH TEMPLATE", template)
}
