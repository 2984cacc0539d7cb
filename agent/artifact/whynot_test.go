package artifact

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/fault"
)

// What says nothing about the extension leaves open whether it is qualified.
func TestWhatSaysSomethingAboutAnExtension(t *testing.T) {
	unequal := fault.New(fault.BackupNotVerified, "a row is missing")
	for name, err := range map[string]error{
		"it does not work":           &unqualifiedError{"false"},
		"the copy is another":        unequal,
		"PostgreSQL does not accept": fmt.Errorf("install: %w", &pgconn.PgError{Code: "42710"}),
		"it cannot be restored":      atFault(&load.StatementError{SQLState: "42704"}),
	} {
		if why, open := whyNot(err); why == "" || open != nil {
			t.Errorf("%s: %q, %v", name, why, open)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, &TooLongError{"its verification", time.Second})
	defer cancel()
	open := map[string]error{
		"none": nil, "another": errors.New("no space"), "late": unverifiedInTime(ctx, ctx.Err()),
	}
	if !fault.Has(open["late"], fault.BackupNotVerified) {
		t.Error(open["late"])
	}
	for _, code := range []string{"28P01", "40P01", "55P03", "53300", "57P01"} {
		open[code] = &pgconn.PgError{Code: code}
		open[code+" in the restore"] = atFault((&load.Restorer{}).Failure(dumpsql.Item{}, open[code]))
	}
	for name, err := range open {
		if why, got := whyNot(err); why != "" || (got == nil) != (err == nil) {
			t.Errorf("%s: %q, %v", name, why, got)
		}
	}
}
