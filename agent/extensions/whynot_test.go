package extensions

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/backup"
)

// What says nothing about the extension leaves open whether it is qualified.
func TestWhatSaysSomethingAboutAnExtension(t *testing.T) {
	unequal := backup.NotVerified(errors.New("a row is missing"))
	for name, err := range map[string]error{
		"it does not work":           &unqualifiedError{"false"},
		"the copy is another":        unequal,
		"PostgreSQL does not accept": fmt.Errorf("install: %w", &pgconn.PgError{Code: "42710"}),
		"it cannot be restored":      backup.NotVerified(&load.StatementError{SQLState: "42704"}),
	} {
		if why, open := whyNot(err); why == "" || open != nil {
			t.Errorf("%s: %q, %v", name, why, open)
		}
	}
	open := map[string]error{
		"none": nil, "another": errors.New("no space"),
		"late": errors.Join(unequal, &jobs.TooLongError{What: "its verification", Limit: time.Second}),
	}
	for _, code := range []string{"28P01", "40P01", "55P03", "53300", "57P01"} {
		open[code] = &pgconn.PgError{Code: code}
		restored := (&load.Restorer{}).Failure(dumpsql.Item{}, open[code])
		if at := new(load.StatementError); errors.As(restored, &at) {
			restored = backup.NotVerified(at)
		}
		open[code+" in the restore"] = restored
	}
	for name, err := range open {
		if why, got := whyNot(err); why != "" || (got == nil) != (err == nil) {
			t.Errorf("%s: %q, %v", name, why, got)
		}
	}
}
