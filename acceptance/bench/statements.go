package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// heard is how many statements the metadata server says it was sent while fn ran, whoever sent them.
func (b *bench) heard(ctx context.Context, fn func() error) (int, error) {
	db, err := sql.Open("postgres", b.stack.Metadata.URL("postgres"))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	log := filepath.Join(b.path("stack"), "metadata", "postgres.log")
	if err := b.logStatements(ctx, db, "all"); err != nil {
		return 0, err
	}
	before, err := os.Stat(log)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(fn(), b.logStatements(ctx, db, "none")); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	return countStatements(string(text[before.Size():])), nil
}

// settle is how long sessions may take to hear of a new setting.
const settle = 300 * time.Millisecond

func (b *bench) logStatements(ctx context.Context, db *sql.DB, which string) error {
	_, set := db.ExecContext(ctx, "ALTER SYSTEM SET log_statement = '"+which+"'")
	_, told := db.ExecContext(ctx, "SELECT pg_reload_conf()")
	time.Sleep(settle)
	return errors.Join(set, told)
}

var executed = regexp.MustCompile(`(?m)^\S+ \S+ \S+ \[\d+\] \S+@pgherd_metadata LOG:  (?:execute [^:]*|statement): `)

func countStatements(log string) int { return len(executed.FindAllString(log, -1)) }
