package setup

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/pgherd/pgherd/agent/pg"
)

//go:embed statements.sql
var statementsSQL string

// Conditions: that the server has loaded what counts statements, and that the maintenance database has what reads it.
const (
	loaded    = `EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'pg_stat_statements.max')`
	installed = `pg_catalog.to_regprocedure('server.pg_stat_statements(boolean)') IS NOT NULL`
)

// CollectsStatements reports whether the server counts the statements of its databases, and the agent can read that. It asks in
// the maintenance database.
func CollectsStatements(ctx context.Context, maintenance pg.Querier) (bool, error) {
	return pg.One[bool](ctx, maintenance, "SELECT "+loaded+" AND "+installed)
}

// uncollected is a warning where customers cannot see their slow queries; empty where they can.
func uncollected(ctx context.Context, s superuser) (warning string, err error) {
	db, err := s.in(MaintenanceDatabase, nil).open(ctx)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var has, can bool
	if err := db.QueryRowContext(ctx, "SELECT "+loaded+", "+installed).Scan(&has, &can); err != nil {
		return "", fmt.Errorf("find out whether statements are collected: %w", err)
	}
	const so = "customers cannot see their slow queries: "
	const load = "set shared_preload_libraries = 'pg_stat_statements' in postgresql.conf and restart PostgreSQL"
	switch {
	case !can:
		return so + "install PostgreSQL's contrib package, run agent init again, then " + load, nil
	case !has:
		return so + load, nil
	}
	return "", nil
}
