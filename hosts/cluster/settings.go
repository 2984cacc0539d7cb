package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings are the package's own, then those of the caller, then those that the package must know of.
func (p *Postgres) settings() map[string]string {
	all := map[string]string{
		"log_line_prefix": "%m [%p] %q%u@%d ",
		"log_timezone":    "UTC",
		"max_connections": "250",
		// As agent init wants it.
		"max_locks_per_transaction": "800",
		"reserved_connections":      "10",
		"timezone":                  "UTC",
	}
	if p.counts() {
		all["shared_preload_libraries"] = "pg_stat_statements"
	}
	if p.options.Fast {
		maps.Copy(all, map[string]string{
			"autovacuum_naptime": "1h", "fsync": "off", "full_page_writes": "off", "max_wal_senders": "0",
			"shared_buffers": "32MB", "wal_level": "minimal",
		})
	}
	maps.Copy(all, p.options.Settings)
	maps.Copy(all, map[string]string{
		"listen_addresses":        p.options.Host,
		"password_encryption":     "scram-sha-256",
		"port":                    strconv.Itoa(p.port),
		"unix_socket_directories": p.socketDir,
		"unix_socket_permissions": "0700",
	})
	return all
}

// counts reports whether PostgreSQL has what counts statements, in one of the folders of libraries beside its program's. It would
// not start with a library that is missing.
func (p *Postgres) counts() bool {
	beside := filepath.Dir(filepath.Dir(p.options.Tools.Postgres))
	for _, folder := range []string{"lib", "lib/postgresql", "lib64", "lib64/pgsql"} {
		found, err := filepath.Glob(filepath.Join(beside, folder, "pg_stat_statements.*"))
		if err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// writeSettings replaces postgresql.conf, so that a setting left out at the next start is PostgreSQL's default again.
func (p *Postgres) writeSettings() error {
	settings := p.settings()
	var text strings.Builder
	text.WriteString("# Written by pgherd at every start.\n")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	path := filepath.Join(p.dataDir(), "postgresql.conf")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return Own(path)
}
