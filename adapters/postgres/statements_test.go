package postgres

import (
	"regexp"
	"testing"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
)

// clocks are the ways to ask PostgreSQL for the time.
var clocks = regexp.MustCompile(`(?i)\b(now\(|current_timestamp|current_date|current_time\b|localtime|clock_timestamp|` +
	`statement_timestamp|transaction_timestamp|timeofday|'now'|'today')`)

func TestStatementsNeverAskForTheTime(t *testing.T) {
	if len(pgdb.Statements) < 50 {
		t.Fatalf("only %d statements are registered", len(pgdb.Statements))
	}
	for _, s := range pgdb.Statements {
		if found := clocks.FindString(s.Text()); found != "" {
			t.Errorf("%q asks for the time with %s", s.Text(), found)
		}
	}
}
