package setup

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pgherd/pgherd/agent/floors"
)

// inspectLanguages refuses a server on which customers can use a trusted procedural language that does not pass, and warns of
// each that does.
func inspectLanguages(ctx context.Context, db *sql.DB, s superuser, policy floors.Policy) (warnings []string, err error) {
	found, err := floors.OfferedLanguages(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("looking for procedural languages: %w", err)
	}
	installed, err := floors.InstalledLanguages(ctx, db, func(database string) (*sql.DB, error) {
		return s.in(database, nil).open(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("looking for procedural languages: %w", err)
	}
	found = append(found, installed...)
	for _, f := range found {
		warnings = append(warnings, "customers can use the trusted procedural language "+f.String()+
			"; an endless loop in it cannot be ended, and holds up every rotation of its login")
	}
	return warnings, policy.AdmitLanguages(found)
}
