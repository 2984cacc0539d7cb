package load_test

import (
	"fmt"

	"github.com/lib/pq"
)

func (c *customer) kindsOfTables() []func() {
	return []func(){
		c.bare, c.identity, c.altered, c.reference, c.constraint, c.index, c.indexes, c.partitions, c.ranges, c.hashes, c.child,
		c.sequence, c.statistics, c.publication, c.largeObject, c.foreign,
	}
}

// bare makes tables of which no column is dumped.
func (c *customer) bare() {
	name := c.qualified()
	c.do(`CREATE %s %s (%s)`, c.pick("TABLE", "UNLOGGED TABLE"), name, c.pick("", "a int GENERATED ALWAYS AS (1) STORED"))
	for range c.upTo(4) {
		c.do(`INSERT INTO %s DEFAULT VALUES`, name)
	}
	c.has("TABLE", name)
}

// identity makes a table with numbers that only the server may give.
func (c *customer) identity() {
	schema, name, numbers := c.schemas[c.upTo(len(c.schemas))], c.name(), c.name()
	c.do(`CREATE TABLE %s.%s (a text COLLATE "C" NOT NULL, id smallint GENERATED ALWAYS AS IDENTITY
		(SEQUENCE NAME %[1]s.%[3]s START WITH 7 INCREMENT BY -2 MINVALUE -50 MAXVALUE 9 CYCLE), gone int, serial bigserial)`,
		schema, name, numbers)
	c.do(`INSERT INTO %s.%s (a) VALUES (%s), (%s)`, schema, name, c.text(), c.text())
	c.do(`ALTER TABLE %s.%s DROP COLUMN gone`, schema, name)
	c.has("SEQUENCE", schema+"."+numbers)
}

// altered makes of tables what they cannot be from the beginning.
func (c *customer) altered() {
	t := c.some()
	c.do(`ALTER TABLE %s %s`, t.name, c.pick(
		"ALTER "+t.columns[0]+" SET STORAGE EXTERNAL", "ALTER "+t.columns[0]+" SET COMPRESSION pglz",
		"ALTER "+t.columns[1]+" SET STATISTICS 7", "ALTER "+t.columns[1]+" SET (n_distinct = -0.5)", "REPLICA IDENTITY FULL",
		"FORCE ROW LEVEL SECURITY", "ADD COLUMN "+c.name()+" text DEFAULT "+c.text(), "ALTER "+t.columns[0]+" SET DEFAULT "+c.text(),
		"ALTER id SET GENERATED ALWAYS", "DISABLE TRIGGER ALL"))
}

// reference makes a foreign key, perhaps in a circle of such.
func (c *customer) reference() {
	from, to, column, name := c.some(), c.some(), c.name(), c.name()
	c.do(`ALTER TABLE %s ADD COLUMN %s int`, from.name, column)
	c.do(`ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (id) %s`, from.name, name, column, to.name,
		c.pick("", "NOT VALID", "MATCH FULL ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED",
			"ON UPDATE CASCADE ON DELETE SET DEFAULT"))
	c.hasBare("CONSTRAINT", name+" ON "+from.name)
}

func (c *customer) constraint() {
	t, name := c.some(), c.name()
	c.do(`ALTER TABLE %s ADD CONSTRAINT %s %s`, t.name, name, c.pick(
		"CHECK (id > -1000 OR "+t.columns[0]+" <> "+c.text()+") NOT VALID", "CHECK (id IS NOT NULL) NO INHERIT",
		"UNIQUE NULLS NOT DISTINCT (id, "+t.columns[0]+") INCLUDE (kind)", "UNIQUE (id, kind) DEFERRABLE INITIALLY DEFERRED",
		"EXCLUDE USING btree (id WITH =) WHERE ("+t.columns[0]+" <> "+c.text()+")"))
	c.hasBare("CONSTRAINT", name+" ON "+t.name)
}

func (c *customer) index() {
	t := c.some()
	c.do(`CREATE INDEX %s ON %s ((%s || %s)) WHERE %[3]s <> %[4]s`, c.name(), t.name, t.columns[1], c.text())
	c.do(`CREATE INDEX ON %s USING gin (list)`, t.name)
	c.do(`CREATE UNIQUE INDEX ON %s (id DESC NULLS LAST, %s COLLATE "C" text_pattern_ops) WITH (fillfactor = 50)`,
		t.name, t.columns[0])
}

// indexes makes a table that is in the order of an index.
func (c *customer) indexes() {
	schema, table, name := c.schemas[c.upTo(len(c.schemas))], c.name(), c.name()
	c.do(`CREATE TABLE %s.%s (a text)`, schema, table)
	c.do(`CREATE INDEX %s ON %s.%s (lower(a), (a || %s))`, name, schema, table, c.text())
	c.do(`CLUSTER %s.%s USING %s`, schema, table, name)
	c.do(`ALTER INDEX %s.%s ALTER COLUMN 2 SET STATISTICS 9`, schema, name)
	c.hasBare("INDEX", schema+"."+name)
}

func (c *customer) partitions() {
	whole, part := c.qualified(), c.qualified()
	c.do(`CREATE TABLE %s (a text, b int) PARTITION BY LIST (a)`, whole)
	c.do(`CREATE TABLE %s PARTITION OF %s FOR VALUES IN (%s, NULL)`, part, whole, c.text())
	c.do(`CREATE TABLE %s PARTITION OF %s DEFAULT`, c.qualified(), whole)
	c.do(`INSERT INTO %s VALUES (%s, 1), (NULL, 2), (';', 3)`, whole, c.text())
	c.do(`CREATE INDEX %s ON %s (b, a)`, c.name(), whole)
	c.do(`ALTER TABLE %s ALTER a SET DEFAULT %s`, part, c.text())
}

// ranges makes a table in parts of parts.
func (c *customer) ranges() {
	whole, part := c.qualified(), c.qualified()
	c.do(`CREATE TABLE %s (a text, b int) PARTITION BY RANGE (b, a)`, whole)
	c.do(`CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (MINVALUE, MINVALUE) TO (5, %s) PARTITION BY LIST (a)`,
		part, whole, c.text())
	c.do(`CREATE TABLE %s PARTITION OF %s (CHECK (b < 7)) DEFAULT`, c.qualified(), part)
	c.do(`CREATE TABLE %s PARTITION OF %s DEFAULT`, c.qualified(), whole)
	c.do(`CREATE TRIGGER %s AFTER UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s(%s)`, c.name(), whole, c.triggered(), c.text())
	c.do(`INSERT INTO %s VALUES (%s, 1), (%s, 5), ('', 7)`, whole, c.text(), c.text())
	c.has("TABLE", part)
}

// hashes makes a table in parts that are found by an expression, of which one was a table before.
func (c *customer) hashes() {
	whole, part := c.qualified(), c.qualified()
	c.do(`CREATE TABLE %s (a text NOT NULL, b int) PARTITION BY HASH ((a || %s))`, whole, c.text())
	c.do(`CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS 2, REMAINDER 0)`, c.qualified(), whole)
	c.do(`CREATE TABLE %s (b int, a text NOT NULL)`, part)
	c.do(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES WITH (MODULUS 2, REMAINDER 1)`, whole, part)
	c.do(`INSERT INTO %s VALUES (%s, 1), (%s, 2), ('', 3)`, whole, c.text(), c.text())
}

func (c *customer) child() {
	name, from := c.qualified(), c.some()
	c.do(`CREATE TABLE %s (%s text, %s text DEFAULT %s) INHERITS (%s)`, name, c.name(), from.columns[0], c.text(), from.name)
	c.do(`INSERT INTO %s (id, %s) VALUES (1, %s)`, name, from.columns[0], c.text())
}

func (c *customer) sequence() {
	name := c.qualified()
	c.do(`CREATE SEQUENCE %s INCREMENT -3 MINVALUE -1000 START -5 MAXVALUE 5`, name)
	if c.upTo(2) == 1 {
		c.do(`SELECT nextval(%s)`, pq.QuoteLiteral(name))
	}
	c.has("SEQUENCE", name)
}

func (c *customer) statistics() {
	t, name := c.some(), c.qualified()
	c.do(`CREATE STATISTICS %s %s ON %s, (lower(%s)), (%[4]s || %[5]s) FROM %[6]s`, name, c.pick("", "(mcv, ndistinct)"),
		t.columns[0], t.columns[1], c.text(), t.name)
	c.do(`ALTER STATISTICS %s SET STATISTICS 7`, name)
	c.hasBare("STATISTICS", name)
}

func (c *customer) publication() {
	t, name := c.some(), c.name()
	c.do(`CREATE PUBLICATION %s %s WITH (publish = 'insert')`, name, c.pick(
		"FOR TABLE ONLY "+t.name+" ("+t.columns[0]+", id) WHERE (id > 0 AND "+t.columns[0]+" <> "+c.text()+")",
		"FOR TABLES IN SCHEMA "+c.schemas[len(c.schemas)-1], "FOR ALL TABLES", ""))
	c.hasBare("PUBLICATION", name)
}

func (c *customer) largeObject() {
	c.made++
	oid := fmt.Sprint(20000 + c.made)
	c.do(`SELECT lo_from_bytea(%s, convert_to(repeat(%s, %s), 'UTF8'))`, oid, c.text(), c.pick("1", "5000"))
	c.has("LARGE OBJECT", oid)
	if c.upTo(3) == 1 {
		c.do(`ALTER LARGE OBJECT %s OWNER TO "other; -- owner"`, oid)
	}
}

// foreign makes what a customer cannot, but a dump may have.
func (c *customer) foreign() {
	wrapper, server, name := c.name(), c.name(), c.qualified()
	c.do(`CREATE FOREIGN DATA WRAPPER %s OPTIONS ("a;b" %s)`, wrapper, c.text())
	c.do(`CREATE SERVER %s TYPE %s VERSION %s FOREIGN DATA WRAPPER %s OPTIONS (host %s)`,
		server, c.text(), c.text(), wrapper, c.text())
	c.do(`CREATE USER MAPPING FOR %s SERVER %s OPTIONS ("user" %s)`, c.pick("PUBLIC", `"other; -- owner"`), server, c.text())
	c.do(`CREATE FOREIGN TABLE %s (a text OPTIONS ("b" %s) DEFAULT %s, %s int) SERVER %s OPTIONS (c %s)`,
		name, c.text(), c.text(), c.name(), server, c.text())
	c.hasRelation("FOREIGN TABLE", name)
	c.objects = append(c.objects, object{"SERVER " + server, "FOREIGN SERVER " + server})
}
