package copies

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/load"
)

func TestAdviceOnUploads(t *testing.T) {
	for name, c := range map[string]struct {
		at           load.StatementError
		dumped, want string
	}{
		"an extension's type": {
			load.StatementError{SQLState: "42704", Message: `type "public.citext" does not exist`}, "16.9", "extension citext",
		},
		"its operator class": {
			load.StatementError{SQLState: "42704", Message: `operator class "gin_trgm_ops" does not exist`}, "", "extension pg_trgm",
		},
		"its function": {
			load.StatementError{SQLState: "42883", Message: `function public.gen_salt(unknown) does not exist`}, "", "extension pgcrypto",
		},
		"another type": {load.StatementError{SQLState: "42704", Message: `type "mood" does not exist`}, "16.9", ""},
		"data only": {
			load.StatementError{SQLState: "42P01", Statement: "COPY t (a) FROM stdin", Message: "no such table"}, "", "--data-only",
		},
		"another table": {load.StatementError{SQLState: "42P01", Statement: "ALTER TABLE t", Message: "does not exist"}, "", ""},
		"with --create": {
			load.StatementError{SQLState: "42501", Statement: "CREATE DATABASE shop"}, "18.1", "without --create",
		},
		"all databases": {load.StatementError{SQLState: "42501", Statement: "CREATE ROLE ada"}, "16.1", "not with pg_dumpall"},
		"a newer one": {
			load.StatementError{SQLState: "42601", Message: `syntax error at or near "NOT"`}, "18.1 (Debian 18.1-1)",
			"of PostgreSQL 18.1, and this server has 16.14",
		},
		"an equal one": {load.StatementError{SQLState: "42601", Message: "syntax error"}, "16.20", ""},
		"an older one": {load.StatementError{SQLState: "42601", Message: "syntax error"}, "9.6.24", ""},
	} {
		err := advised(refusedUpload(&c.at), c.dumped, "16.14 (Debian 16.14-1)")
		if plain := refusedUpload(&c.at).Error(); (err.Error() == plain) != (c.want == "") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
