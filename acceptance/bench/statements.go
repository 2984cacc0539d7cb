package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// heard is what the metadata server says it was sent while fn ran: every statement with its arguments, whoever sent it.
func (b *bench) heard(ctx context.Context, fn func() error) ([]lookup, error) {
	db, err := sql.Open("postgres", b.stack.Metadata.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	log := filepath.Join(b.path("stack"), "metadata", "postgres.log")
	if err := b.logStatements(ctx, db, "all"); err != nil {
		return nil, err
	}
	before, err := os.Stat(log)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fn(), b.logStatements(ctx, db, "none")); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	return parseLog(string(text[before.Size():])), nil
}

// settle is how long sessions may take to hear of a new setting.
const settle = 300 * time.Millisecond

func (b *bench) logStatements(ctx context.Context, db *sql.DB, which string) error {
	_, set := db.ExecContext(ctx, "ALTER SYSTEM SET log_statement = '"+which+"'")
	_, told := db.ExecContext(ctx, "SELECT pg_reload_conf()")
	time.Sleep(settle)
	return errors.Join(set, told)
}

var (
	executed  = regexp.MustCompile(`^\S+ \S+ \S+ \[\d+\] \S+@pgherd_metadata LOG:  (?:execute [^:]*|statement): `)
	detailed  = regexp.MustCompile(`^\S+ \S+ \S+ \[\d+\] \S+@pgherd_metadata DETAIL:  parameters: `)
	parameter = regexp.MustCompile(`\$\d+ = (?:NULL|'((?:[^']|'')*)')`)
)

// parseLog finds the statements in a log. A line that begins with a tab goes on with the line before it.
func parseLog(log string) []lookup {
	var all []lookup
	for line := range strings.SplitSeq(strings.ReplaceAll(log, "\n\t", "\x00"), "\n") {
		line = strings.ReplaceAll(line, "\x00", "\n")
		if start := executed.FindString(line); start != "" {
			all = append(all, lookup{SQL: line[len(start):]})
		}
		if start := detailed.FindString(line); start != "" && len(all) > 0 {
			all[len(all)-1].readArguments(line[len(start):])
		}
	}
	return all
}

func (l *lookup) readArguments(text string) {
	for _, found := range parameter.FindAllStringSubmatch(text, -1) {
		if strings.HasSuffix(found[0], "= NULL") {
			l.Arguments = append(l.Arguments, nil)
			continue
		}
		value := strings.ReplaceAll(found[1], "''", "'")
		l.Arguments = append(l.Arguments, &value)
	}
}

// has reports whether one of the arguments is value.
func (l *lookup) has(value string) bool {
	return slices.ContainsFunc(l.Arguments, func(a *string) bool { return a != nil && *a == value })
}
