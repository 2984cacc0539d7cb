package load

import (
	"context"
	"strings"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// Who first reads a row that was just written marks it as committed, so that a restored table is written once more when it is
// compared, or when its customers first read it. COPY can write rows as frozen instead, which need no mark, into a table that was
// emptied in the same transaction. That is done for tables that the restore has made, that are empty and not small, and in which
// nothing of a customer's runs while rows are written: it could see frozen rows before their statement has ended.

// manyRows is from when on a few more round trips do not matter.
const manyRows = 10_000

const canBeFrozen = `SELECT c.relkind = 'r' AND c.relchecks = 0 AND NOT c.relhastriggers AND NOT c.relrowsecurity
	AND pg_catalog.pg_get_userbyid(c.relowner) = current_user AND pg_catalog.pg_relation_size(c.oid) = 0
	AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND (t.typtype = 'd' OR a.attgenerated <> ''))
	AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid)
	FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)`

// frozen begins the transaction in which a COPY writes frozen rows, and returns that COPY; it is the same where it writes others.
func (r *Restorer) frozen(ctx context.Context, sql string) (copied string, begun bool, err error) {
	rest, plain := strings.CutSuffix(strings.TrimSpace(sql), " FROM stdin;")
	table := dumpsql.CopyTarget([]byte(sql))
	if !plain || r.Rows[dumpsql.Canonical(table)] < manyRows || r.Conn.TxStatus() != 'I' {
		return sql, false, nil
	}
	can := r.Conn.ExecParams(ctx, canBeFrozen, [][]byte{[]byte(table)}, nil, nil, nil).Read()
	if can.Err != nil || len(can.Rows) == 0 || string(can.Rows[0][0]) != "t" {
		return sql, false, can.Err
	}
	_, err = r.Conn.Exec(ctx, "BEGIN; TRUNCATE ONLY "+table).ReadAll()
	return rest + " FROM stdin WITH (FREEZE);", true, err
}
