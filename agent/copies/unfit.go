package copies

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/rehearsal"
)

// unfit is what a manifest says of a database that this server, of the major version here, does not have, or takes for something
// else. whole is false where so much is missing that no copy can be begun.
func unfit(ctx context.Context, admin *sql.DB, m backup.Manifest, here int) (found []rehearsal.Break, whole bool, err error) {
	extensions, err := unknownExtensions(ctx, admin, m)
	if err != nil {
		return nil, false, err
	}
	words, err := otherWords(m, here)
	if err != nil {
		return nil, false, err
	}
	locale, err := unknownLocale(ctx, admin, m.Contents.Locale)
	return slices.Concat(extensions, words, locale), len(locale) == 0, err
}

// unknownExtensions are those that the server does not have in the version of the database.
func unknownExtensions(ctx context.Context, admin *sql.DB, m backup.Manifest) (found []rehearsal.Break, err error) {
	const query = `SELECT version FROM pg_available_extension_versions WHERE name = $1 ORDER BY 1`
	for _, e := range m.Contents.Extensions {
		versions, err := pg.Column(ctx, admin, query, e.Name)
		switch {
		case err != nil:
			return nil, err
		case len(versions) == 0:
			found = append(found, rehearsal.Break{
				Kind: rehearsal.Extension, Object: e.Name, What: "the server does not have it",
				Remedy: "install its files on the server's machine, or drop it in the database",
			})
		case !slices.Contains(versions, e.Version):
			found = append(found, rehearsal.Break{
				Kind: rehearsal.Extension, Object: e.Name,
				What:   fmt.Sprintf("the server has it in %s, the database in %s", strings.Join(versions, ", "), e.Version),
				Remedy: "upgrade it in the database to a version that both servers have",
			})
		}
	}
	return found, nil
}

// otherWords are functions and types whose names mean something else to this server than to the one that they are from.
func otherWords(m backup.Manifest, here int) (found []rehearsal.Break, err error) {
	words := rehearsal.Restricted(pg.Major(m.ServerVersion), here)
	err = m.Contents.Objects.Each(func(o backup.Object) {
		if o.Extension == "" && slices.Contains(namedLikeTypes, o.Kind) && slices.Contains(words, bareName(o.Name)) {
			found = append(found, rehearsal.Break{
				Kind: rehearsal.Word, Object: o.Kind + " " + o.Name,
				What:   fmt.Sprintf("PostgreSQL %d has syntax of its own of that name", here),
				Remedy: "rename it, and whatever calls it",
			})
		}
	})
	return found, err
}

// namedLikeTypes are the kinds of objects that cannot have the names of some words.
var namedLikeTypes = []string{"function", "procedure", "aggregate", "type"}

// bareName is the last part of a name as PostgreSQL writes it, without its schema and arguments.
func bareName(name string) string {
	quoted, start, end := false, 0, len(name)
	for i, c := range name {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			start = i + 1
		case c == '(' && !quoted && end == len(name):
			end = i
		}
		if end < len(name) {
			break
		}
	}
	return strings.Trim(name[start:end], `"`)
}

// unknownLocale is that of a database of which the server's machine does not have the collation. Of ICU there is every one.
func unknownLocale(ctx context.Context, admin *sql.DB, l backup.Locale) (found []rehearsal.Break, err error) {
	if l.Provider == "builtin" {
		return nil, nil
	}
	const query = `SELECT name FROM unnest($1::text[]) name WHERE name NOT IN ('C', 'POSIX') AND NOT EXISTS (
			SELECT FROM pg_collation WHERE collprovider = 'c' AND lower(replace(name, '-', '')) IN
				(lower(replace(collcollate, '-', '')), lower(replace(collctype, '-', ''))))
		AND NOT EXISTS (SELECT FROM pg_database WHERE lower(replace(name, '-', '')) IN
			(lower(replace(datcollate, '-', '')), lower(replace(datctype, '-', ''))))`
	names, err := pg.Column(ctx, admin, query, pq.Array([]string{l.Collate, l.Ctype}))
	for _, name := range slices.Compact(names) {
		found = append(found, rehearsal.Break{
			Kind: rehearsal.Collation, Object: name, What: "the server's machine does not have the locale of the database",
			Remedy: "make the locale on the machine, and have PostgreSQL know it (SELECT pg_import_system_collations('pg_catalog'))",
		})
	}
	return found, err
}
