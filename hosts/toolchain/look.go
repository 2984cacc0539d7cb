package toolchain

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/pgversion"
)

// Part names a set of tools that come from one folder and are fetched together.
type Part string

// The parts, named as fetch.sh takes them.
const (
	Server Part = "server" // initdb, postgres, pg_ctl
	Client Part = "client" // pg_dump, psql, pgbouncer, pgbackrest
	// Server17 and Server18 are other versions of PostgreSQL to try the tests on. Look takes them only where PGHERD_PG_BINDIR names
	// them. Client18 has the pg_dump and the psql that a server of 18 takes; it needs Client, whose libraries they load.
	Server17 Part = "server-17"
	Server18 Part = "server-18"
	Client18 Part = "client-18"
	// PoolerNext and ArchiverNext are a newer PgBouncer and a newer pgBackRest to try the tests on. Look takes them only where
	// PGHERD_PGBOUNCER and PGHERD_PGBACKREST name them; they need Client, whose libraries they load.
	PoolerNext   Part = "pooler-next"
	ArchiverNext Part = "archiver-next"
	// Balancer is what stands before several API hosts and dashboards: bin/haproxy, and bin/nc to talk to it. It needs Client too.
	Balancer Part = "balancer"
	// Schemas and Regression are no programs but SQL to test with: schemas of packages, and PostgreSQL's regression tests.
	Schemas    Part = "schemas"
	Regression Part = "regression"
	// Browser and Axe are what pages are tested with: bin/chromium, and axe.min.js.
	Browser Part = "browser"
	Axe     Part = "axe"
	// ObjectStore is what backups are tested with that leave the machine: bin/objectstore.
	ObjectStore Part = "objectstore"
	// Monitoring has Prometheus, Alertmanager and rsyslog, as the folder of a root to run them in.
	Monitoring Part = "monitoring"
	// Roots are bare Debians that packages are tried in: a folder of .deb files for each, by its name.
	Roots Part = "roots"
)

// Folder is where the part of the repository is that the working directory is in, if it was fetched.
func Folder(part Part) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, Dir, string(part))
	if _, err := os.Stat(filepath.Join(folder, "lock")); err != nil {
		return "", fmt.Errorf("the part %s was not fetched: run \"go run ./hosts/toolchain/ensure %[1]s\"", part)
	}
	return folder, nil
}

// Missing says which program of which part was not found.
type Missing struct {
	Part Part
	What string
}

func (m *Missing) Error() string {
	return fmt.Sprintf("%s not found: run \"make toolchain\" (or set %s, %s and %s)", m.What, BindirVariable, PoolerVariable,
		ArchiverVariable)
}

// program is one wanted program: where its path goes, and the versions that will do.
type program struct {
	name string
	path *string
	fits func(floors.Number) bool
	want string
}

// Look fills in every tool that it finds, and says what it did not find: at most one entry a part. Root may be empty.
func Look(root string) (Tools, []*Missing) {
	fits, name := serverFits()
	return look(root, serverFolders(root), fits, name)
}

// FindFetched is Find with PostgreSQL from a part that was fetched, whatever the variables say.
func FindFetched(part Part) (Tools, error) {
	folder, err := Folder(part)
	if err != nil {
		return Tools{}, err
	}
	tools, missing := look(filepath.Dir(filepath.Dir(folder)), []string{filepath.Join(folder, "bin")}, supported, "PostgreSQL")
	if len(missing) > 0 {
		return Tools{}, missing[0]
	}
	return tools, nil
}

func look(root string, servers []string, fits func(floors.Number) bool, name string) (Tools, []*Missing) {
	var tools Tools
	var missing []*Missing
	if what := lookTogether(servers, []program{
		{"initdb", &tools.Initdb, fits, name + " (initdb)"},
		{"postgres", &tools.Postgres, fits, name + " (postgres)"},
		{"pg_ctl", &tools.PgCtl, fits, name + " (pg_ctl)"},
	}); what != "" {
		missing = append(missing, &Missing{Server, what})
	}
	tools.Major = pgversion.Default
	if found, ok := versionOf(tools.Postgres); ok {
		tools.Major = found[0]
	}
	client := clientOf(tools.Major)
	what := lookTogether(clientFolders(root), []program{
		{"pg_dump", &tools.PgDump, client, fmt.Sprintf("pg_dump %d or later", tools.Major)},
		{"psql", &tools.Psql, client, fmt.Sprintf("psql %d or later", tools.Major)},
	})
	if what != "" && tools.Major >= 18 {
		missing = append(missing, &Missing{Client18, what})
		what = ""
	}
	if what == "" {
		what = lookTogether(programFolders(root, PoolerVariable), []program{
			{"pgbouncer", &tools.PgBouncer, pooler1241, "PgBouncer 1.24.1 or later"},
		})
	}
	if what == "" {
		what = lookTogether(programFolders(root, ArchiverVariable), []program{
			{"pgbackrest", &tools.PgBackRest, archiver2551, "pgBackRest 2.55.1 or later"},
		})
	}
	if what != "" {
		missing = append(missing, &Missing{Client, what})
	}
	return tools, missing
}

// lookTogether takes all programs from the first folder that has each in a fitting version: programs of different builds are
// never mixed. It returns what is missing, or "".
func lookTogether(folders []string, programs []program) string {
	what := programs[0].want
	for _, folder := range folders {
		lacks := firstLacking(folder, programs)
		if lacks == nil {
			for _, p := range programs {
				*p.path = filepath.Join(folder, p.name)
			}
			return ""
		}
		if lacks != &programs[0] {
			what = lacks.want
		}
	}
	return what
}

func firstLacking(folder string, programs []program) *program {
	for i := range programs {
		path := filepath.Join(folder, programs[i].name)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return &programs[i]
		}
		if v, ok := versionOf(path); !ok || !programs[i].fits(v) {
			return &programs[i]
		}
	}
	return nil
}
