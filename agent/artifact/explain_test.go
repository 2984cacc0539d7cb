package artifact

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReasonsOfPgDump(t *testing.T) {
	for complaint, want := range map[string]string{
		"pg_dump: error: Dumping the contents of table \"big v\" failed: PQgetResult() failed.\n" +
			"pg_dump: detail: Error message from server: ERROR:  invalid memory alloc request size 1600000003\n" +
			"pg_dump: detail: Command was: COPY public.\"big v\" (b) TO stdout;": `the table "big v" cannot be dumped: ` +
			`invalid memory alloc request size 1600000003`,
		"pg_dump: error: query failed: ERROR:  out of shared memory\nHINT:  You might need to increase max_locks_per_transaction.\n" +
			"pg_dump: detail: Query was: SELECT last_value, is_called FROM s": "the database cannot be dumped: out of shared memory",
		"pg_dump: error: connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  password authentication failed": "",
		"pg_dump: error: query failed: server closed the connection unexpectedly":                                         "",
	} {
		var told interface{ ForCustomer() string }
		got, config := "", Config{}
		if errors.As(config.explained(&pgDumpError{complaint, errors.New("exit status 1")}), &told) {
			got = told.ForCustomer()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", complaint, diff)
		}
	}
}
