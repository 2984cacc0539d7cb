package copies

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
)

// advised adds to why an upload is refused what its sender can do about it. dumped and server are the versions of PostgreSQL that
// the dump is of, empty where it does not say, and that restores it.
func advised(err error, dumped, server string) error {
	var at *load.StatementError
	if errors.Is(err, dumpsql.ErrStatementTooLong) {
		return refusedUpload(fmt.Errorf("%w: a statement may have %d MiB; make the dump without --inserts, or with fewer"+
			" --rows-per-insert", why(err), mostStatement>>20))
	}
	if !errors.As(err, &at) {
		return err
	}
	advice := ""
	switch newer := pg.Major(dumped) > pg.Major(server); {
	case ofServer(at.Statement):
		advice = "what is uploaded is restored into the one database: make the dump with pg_dump, without --create, not with pg_dumpall"
	case newer && at.SQLState != "":
		advice = fmt.Sprintf("the dump is of PostgreSQL %s, and this server has %s, which does not know all that newer ones write",
			shortVersion(dumped), shortVersion(server))
	case at.SQLState == "42704" || at.SQLState == "42883":
		advice = adviceOnExtension(at.Message)
	case at.SQLState == "42P01" && (strings.HasPrefix(at.Statement, "COPY ") || strings.HasPrefix(at.Statement, "INSERT ")):
		advice = "what is uploaded replaces the whole database, so the dump must make its tables too: make it without --data-only"
	}
	if advice == "" {
		return err
	}
	return refusedUpload(fmt.Errorf("%w; %s", why(err), advice))
}

// ofServer reports whether a statement is one that pg_dump --create or pg_dumpall writes about more than what is in a database.
func ofServer(statement string) bool {
	for _, begins := range []string{"CREATE DATABASE ", "DROP DATABASE ", "CREATE ROLE ", "DROP ROLE ", "ALTER ROLE "} {
		if strings.HasPrefix(statement, begins) {
			return true
		}
	}
	return false
}

// why is an error without its code.
func why(err error) error {
	if below := errors.Unwrap(err); below != nil {
		return below
	}
	return err
}

// parts are names by which statements miss an extension that the dump does not make, as with pg_dump --schema.
var parts = map[string][]string{
	"citext":  {"citext"},
	"pg_trgm": {"gin_trgm_ops", "gist_trgm_ops", "similarity(", "show_trgm("},
	"pgcrypto": {
		"crypt(", "gen_salt(", "digest(", "hmac(", "pgp_sym_", "pgp_pub_", "encrypt(", "decrypt(", "gen_random_bytes(", "armor(",
	},
}

func adviceOnExtension(message string) string {
	for name, list := range parts {
		for _, part := range list {
			if strings.Contains(message, part) {
				return fmt.Sprintf("it belongs to the extension %[1]s, which the dump does not make: put \"CREATE EXTENSION IF NOT EXISTS"+
					" %[1]s WITH SCHEMA public;\" before it, as in (echo '...'; pg_dump ...) | gzip", name)
			}
		}
	}
	return ""
}

// shortVersion is a version without what a distribution adds to it.
func shortVersion(version string) string {
	number, _, _ := strings.Cut(strings.TrimSpace(version), " ")
	return number
}
