package extensions

import (
	"fmt"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/command"
)

// Only what PostgreSQL says of the statement itself is a refusal of it.
func TestRefusal(t *testing.T) {
	exists, inTheWay := &pq.Error{Code: "42710", Message: "it exists"}, &pq.Error{Code: lockNotAvailable}
	change := command.ChangeExtension{Extension: "citext", Change: "install", Version: "1.6"}
	const refused = `PostgreSQL refused CREATE EXTENSION "citext" WITH SCHEMA public VERSION '1.6': it exists (SQLSTATE 42710)`
	for want, errs := range map[string][]error{
		refused:        {&statementError{exists}, fmt.Errorf("attempt: %w", &statementError{exists})},
		"not this one": {refuse("not this one")},
		"":             {exists, fmt.Errorf("ledger: %w", exists), &statementError{inTheWay}, inTheWay, fmt.Errorf("no answer")},
	} {
		for _, err := range errs {
			if got := refusal(err, change); got != want {
				t.Errorf("%v: %q, want %q", err, got, want)
			}
		}
	}
}
