package floors

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

// Language is a trusted procedural language other than PL/pgSQL: one that an extension would install, or one that a database has.
// An endless loop in PL/Perl or PL/Tcl ignores pg_terminate_backend: then no rotation and no revocation of the login comes to its
// end.
type Language struct {
	Name                string
	Extension, Database string // one of them is empty
}

func (l Language) String() string {
	if l.Database != "" {
		return fmt.Sprintf("%s (installed in the database %s)", l.Name, l.Database)
	}
	return fmt.Sprintf("%s (offered by the extension %s)", l.Name, l.Extension)
}

//go:embed offered.sql
var offered string

// Schema makes the function in the maintenance database by which the agent, which is no superuser and so may not read a server's
// files, asks what the server offers. Run by a superuser; may be run again. The function belongs to that superuser, takes no
// argument, and finds nothing by a name that somebody else could take.
func Schema(agent string) string {
	return `CREATE SCHEMA IF NOT EXISTS server;
		REVOKE ALL ON SCHEMA server FROM PUBLIC;
		GRANT USAGE ON SCHEMA server TO ` + agent + `;
		CREATE OR REPLACE FUNCTION server.trusted_languages() RETURNS TABLE (language text, extension text)
			LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$` + offered + `$function$;
		REVOKE ALL ON FUNCTION server.trusted_languages() FROM PUBLIC;
		GRANT EXECUTE ON FUNCTION server.trusted_languages() TO ` + agent
}

// OfferedLanguages lists what extensions would install, as a superuser.
func OfferedLanguages(ctx context.Context, db *sql.DB) ([]Language, error) {
	return offers(ctx, db, offered)
}

// LanguagesBySchema lists the same by the function of Schema.
func LanguagesBySchema(ctx context.Context, maintenance *sql.DB) ([]Language, error) {
	return offers(ctx, maintenance, "SELECT language, extension FROM server.trusted_languages()")
}

func offers(ctx context.Context, db *sql.DB, query string) (all []Language, err error) {
	return list(ctx, db, query, func(rows *sql.Rows) (l Language, err error) { return l, rows.Scan(&l.Name, &l.Extension) })
}

// InstalledLanguages lists what databases have, of those that the session may connect to. It looks at template1 and postgres,
// and where the shared catalog says that somebody else than the first superuser owns a language: PostgreSQL's own extensions
// give it to the customer who installs them. A database that cannot be asked hides no other.
func InstalledLanguages(ctx context.Context, db *sql.DB, open func(database string) (*sql.DB, error)) ([]Language, error) {
	names, err := list(ctx, db, `SELECT datname FROM pg_catalog.pg_database
		WHERE datallowconn AND pg_catalog.has_database_privilege(oid, 'CONNECT') AND (datname IN ('template1', 'postgres')
			OR oid IN (SELECT dbid FROM pg_catalog.pg_shdepend
				WHERE classid = 'pg_catalog.pg_language'::pg_catalog.regclass AND deptype = 'o'))
		ORDER BY datname`, name)
	var found []Language
	for _, name := range names {
		in, failed := installedIn(ctx, name, open)
		found, err = append(found, in...), errors.Join(err, failed)
	}
	return found, err
}

func installedIn(ctx context.Context, database string, open func(string) (*sql.DB, error)) ([]Language, error) {
	db, err := open(database)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	names, err := list(ctx, db, `SELECT lanname FROM pg_catalog.pg_language
		WHERE lanispl AND lanpltrusted AND lanname <> 'plpgsql' ORDER BY lanname`, name)
	if err != nil {
		return nil, fmt.Errorf("languages of the database %s: %w", database, err)
	}
	found := make([]Language, 0, len(names))
	for _, name := range names {
		found = append(found, Language{Name: name, Database: database})
	}
	return found, nil
}

func name(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) }

// list is no function of pg: the cluster of that package's tests asks this one for versions.
func list[T any](ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows) (T, error)) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
