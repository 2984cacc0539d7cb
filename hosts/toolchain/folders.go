package toolchain

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The variables that say where programs are: the folder of PostgreSQL's, and the paths of PgBouncer and pgBackRest.
const (
	BindirVariable   = "PGHERD_PG_BINDIR"
	PoolerVariable   = "PGHERD_PGBOUNCER"
	ArchiverVariable = "PGHERD_PGBACKREST"
)

// usualFolders are where packages of the common systems put PostgreSQL's programs; * stands for a major version.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
}

// serverFolders lists where PostgreSQL may be. A PGHERD_PG_BINDIR that is set is an order, so nothing else is tried; it may hold
// any version that is supported.
func serverFolders(root string) []string {
	if dir := os.Getenv(BindirVariable); dir != "" {
		return []string{dir}
	}
	return append(machineFolders(), fetched(root, Server, "bin")...)
}

// clientFolders lists where pg_dump and psql may be. A PGHERD_PG_BINDIR without them (some server packages) is no error.
func clientFolders(root string) []string {
	var folders []string
	if dir := os.Getenv(BindirVariable); dir != "" {
		folders = append(folders, dir)
	}
	folders = append(folders, machineFolders()...)
	folders = append(folders, fetched(root, Client, "bin")...)
	return append(folders, fetched(root, Client18, "bin")...)
}

// programFolders lists where PgBouncer or pgBackRest may be. The variable is the program's own path.
func programFolders(root, variable string) []string {
	if path := os.Getenv(variable); path != "" {
		return []string{filepath.Dir(path)}
	}
	folders := append(pathFolders(), "/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")
	return append(folders, fetched(root, Client, "bin")...)
}

func machineFolders() []string {
	var folders []string
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	for _, pattern := range usualFolders {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // The patterns are constants; a test matches each.
		}
		slices.Sort(found)
		slices.Reverse(found)
		folders = append(folders, found...)
	}
	return append(folders, pathFolders()...)
}

// pathFolders are the absolute folders of PATH.
func pathFolders() []string {
	return slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool { return !filepath.IsAbs(dir) })
}

func fetched(root string, part Part, folder string) []string {
	if root == "" {
		return nil
	}
	return []string{filepath.Join(root, Dir, string(part), folder)}
}
