package pgdump

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/pg"
)

// No lock of a table keeps names, and what is no table. pg_dump finds tables again by their names, and asks PostgreSQL for parts
// of definitions, which answers as things are now: of a function that was removed pg_dump writes half a definition, and two
// schemas that change their names have it write the rows of the one for the other's. So afterwards all that the snapshot sees
// must still be there, as it was.
//
// Of a sequence pg_dump writes what it is now. That is right, as nextval and setval follow no transaction; but a restart does,
// and goes with what else its transaction has done.

//go:embed names.sql
var readNames string

// names are by what changes with them.
type names map[string]string

func namesIn(ctx context.Context, q pg.Querier) (names, error) {
	all := names{}
	err := content.ReadWithin(ctx, q, "its names", content.Most, readNames, func(rows *sql.Rows) (int, error) {
		var version, name string
		err := rows.Scan(&version, &name)
		all[version] = name
		return len(version) + len(name), err
	})
	return all, err
}

// longestList is how many names are told.
const longestList = 3

// still returns a *Disturbed where something is not any more what it was.
func (n names) still(ctx context.Context, db *sql.DB) error {
	now, err := namesIn(ctx, db)
	if err != nil {
		return err
	}
	var gone []string
	for version, name := range n {
		if _, found := now[version]; !found {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	what := strings.Join(gone[:min(len(gone), longestList)], ", ")
	return &Disturbed{How: "something was removed, replaced, renamed or restarted", Object: what, Cause: errChanged}
}

var errChanged = errors.New("what the dump has read as it is now is not what its snapshot sees")
