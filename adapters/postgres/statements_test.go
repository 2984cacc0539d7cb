package postgres

import (
	"regexp"
	"testing"
)

// clocks are the ways to ask PostgreSQL for the time.
var clocks = regexp.MustCompile(`(?i)\b(now\(|current_timestamp|current_date|current_time\b|localtime|clock_timestamp|` +
	`statement_timestamp|transaction_timestamp|timeofday|'now'|'today')`)

func TestStatementsNeverAskForTheTime(t *testing.T) {
	if len(statements) < 50 {
		t.Fatalf("only %d statements are registered", len(statements))
	}
	for _, s := range statements {
		if found := clocks.FindString(s.text()); found != "" {
			t.Errorf("%q asks for the time with %s", s.text(), found)
		}
	}
}
