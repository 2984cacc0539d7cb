package pgdump

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReasonsOfPgDump(t *testing.T) {
	for complaint, want := range map[string]string{
		"pg_dump: error: Dumping the contents of table \"big v\" failed: PQgetResult() failed.\n" +
			"pg_dump: detail: Error message from server: ERROR:  invalid memory alloc request size 1600000003\n": "a row is too " +
			"large: PostgreSQL writes at most about 1 GB of text for one",
		"pg_dump: error: query failed: ERROR:  out of shared memory\nHINT:  You might need": "it has more" +
			" tables and sequences than the server can lock at once; the operator can raise the limit",
		"pg_dump: error: query failed: FATAL:  terminating connection due to administrator command": "a session of the dump was " +
			"ended: the database has got many more tables since the dump began, or the operator did it",
		"pg_dump: error: could not open large object 900004: ERROR:  permission denied for large object 900004": "the owner of large " +
			"object 900004 may not read it; grant it SELECT on that, or remove the object",
		"pg_dump: error: query failed: ERROR:  permission denied for large object of others":                              "",
		"pg_dump: error: query failed: ERROR:  queries of others: SELECT secret":                                          "",
		"pg_dump: error: connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  password authentication failed": "",
	} {
		var told interface{ ForCustomer() string }
		got, dump := "", New(Tool{}, nil, "", "")
		if errors.As(dump.Explained(&failedError{complaint, errors.New("exit status 1")}), &told) {
			got = told.ForCustomer()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", complaint, diff)
		}
	}
}

// What passes is told apart from what does not, and names what was in the way.
func TestWhatWasRemovedMeanwhile(t *testing.T) {
	for complaint, want := range map[string]string{
		"pg_dump: error: query failed: ERROR:  relation \"live.s\" does not exist\npg_dump: detail: Query was: COPY live.s": "" +
			"relation \"live.s\" does not exist",
		"pg_dump: error: query failed: ERROR:  could not open relation with OID 17182\npg_dump: detail: Query was: SELECT": "" +
			"could not open relation with OID 17182",
		"pg_dump: error: query failed: ERROR:  cache lookup failed for function 16450": "" +
			"cache lookup failed for function 16450",
		"pg_dump: error: definition of view \"v\" appears to be empty (length zero)": "" +
			"definition of view \"v\" appears to be empty (length zero)",
		"pg_dump: error: query failed: ERROR:  permission denied for table secret":                  "",
		"pg_dump: error: query failed: ERROR:  out of memory\npg_dump: detail: that does not exist": "",
	} {
		got, dump := "", New(Tool{}, nil, "", "")
		var disturbed *Disturbed
		if errors.As(dump.Explained(&failedError{complaint, errors.New("exit status 1")}), &disturbed) {
			got = strings.TrimPrefix(disturbed.Text(), "something was removed, replaced or renamed: PostgreSQL says: ")
		}
		if got != want {
			t.Errorf("%s:\n%q, want %q", complaint, got, want)
		}
	}
}
