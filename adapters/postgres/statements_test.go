package postgres

import (
	"regexp"
	"testing"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
)

// clocks are the ways to ask PostgreSQL for the time.
var clocks = regexp.MustCompile(`(?i)\b(now\(|current_timestamp|current_date|current_time\b|localtime|clock_timestamp|` +
	`statement_timestamp|transaction_timestamp|timeofday|'now'|'today')`)

// A host compares its clock with PostgreSQL's, by one statement; nothing else asks for it.
func TestStatementsNeverAskForTheTime(t *testing.T) {
	if len(pgdb.Statements) < 50 {
		t.Fatalf("only %d statements are registered", len(pgdb.Statements))
	}
	for _, s := range pgdb.Statements {
		if found := clocks.FindString(s.Text()); found != "" && s != readClock {
			t.Errorf("%q asks for the time with %s", s.Text(), found)
		}
	}
}
