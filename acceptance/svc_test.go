package acceptance

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// TestTheCommandLineClient does with svc what people and pipelines do most, on the real service.
func TestTheCommandLineClient(t *testing.T) {
	t.Parallel()
	w := driver.Stack(t)
	of := check.Must(w.Operator.NewAccount("business"))(t)
	key := check.Must(w.Operator.NewKey(of))(t)
	svc := newCommandLine(t)
	svc.run(key.Text, "auth", "login", "--url", w.Hosts[0]("").URL, "--ca-file", driver.StackCAFile(), "--api-key", "-")

	db := svc.creates("svc-" + strings.ToLower(rand.Text()[:10]))
	svc.queries(db)
	svc.changesExtensions(w, db)
	svc.givesARole(db)
	svc.backsUp(db)
	db.password = svc.rotatesTheOwner(db)
	svc.deletesAndRecovers(w, db)

	ci := check.Must(w.Operator.NewCIKey(of))(t)
	svc.with("SVC_API_KEY=" + ci.Text).opensAPreview(w)
}

// commandLine runs svc, with psql in the path and nothing of this process's configuration.
type commandLine struct {
	*testing.T
	program, folder string
	environment     []string
}

func newCommandLine(t *testing.T) *commandLine {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	c := &commandLine{T: t, folder: t.TempDir()}
	c.program = stacktest.Build(t, "svc")
	path := strings.Join([]string{filepath.Dir(c.program), filepath.Dir(tools.Psql), os.Getenv("PATH")}, ":")
	c.environment = []string{"HOME=" + c.folder, "PATH=" + path}
	return c
}

// with is the same with more variables.
func (c *commandLine) with(variables ...string) *commandLine {
	more := *c
	more.environment = slices.Concat(c.environment, variables)
	return &more
}

// run runs svc, which must succeed, and returns what it prints.
func (c *commandLine) run(stdin string, args ...string) string {
	c.Helper()
	return c.exec(0, stdin, c.program, args...)
}

// exec runs a program, which must end with a status, and returns what it prints.
func (c *commandLine) exec(status int, stdin, program string, args ...string) string {
	c.Helper()
	command := exec.CommandContext(c.Context(), program, args...)
	var said bytes.Buffer
	command.Dir, command.Env, command.Stdin, command.Stderr = c.folder, c.environment, strings.NewReader(stdin), &said
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.Fatalf("%v: %v", args, err)
	}
	if got := command.ProcessState.ExitCode(); got != status {
		c.Fatalf("%v: status %d, want %d\n%s%s", args, got, status, out, said.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// want fails the test unless svc prints this.
func (c *commandLine) want(want string, args ...string) {
	c.Helper()
	if got := c.run("", args...); got != want {
		c.Errorf("%v: got %q, want %q", args, got, want)
	}
}

// ownDatabase is a database and the password of its owner.
type ownDatabase struct{ name, password string }

func (c *commandLine) creates(name string) ownDatabase {
	c.Helper()
	return ownDatabase{name, c.run("", "databases", "create", name, "--jq", ".password")}
}

// asOwner runs statements as the owner of a database, through the pooler.
func (c *commandLine) asOwner(db ownDatabase, statements string) string {
	c.Helper()
	return c.with("PGPASSWORD="+db.password).run(statements, "psql", db.name, "--", "-XAtqv", "ON_ERROR_STOP=1")
}

const countItems = "SELECT count(*) FROM item"

// queries has tables made by the owner, and read by others: through both entries, and with the variables that are printed.
func (c *commandLine) queries(db ownDatabase) {
	c.Helper()
	c.asOwner(db, "CREATE TABLE item AS SELECT generate_series(1, 1000) AS id")
	c.want("1000", "psql", db.name, "--role", "runtime", "--", "-Atc", countItems)
	c.want("1000", "psql", db.name, "--role", "readonly", "--transaction", "--", "-Atc", countItems)
	c.exec(1, "", c.program, "psql", db.name, "--role", "readonly", "--", "-c", "DELETE FROM item")
	c.exec(2, "", c.program, "psql", db.name, "--", "-w", "-c", countItems) // psql's status where no password is known
	const byVariables = `set -a; eval "$(svc connect "$1" --role runtime --env)"; psql -Atc "$2"`
	if got := c.exec(0, "", "sh", "-c", byVariables, "sh", db.name, countItems); got != "1000" {
		c.Errorf("with the variables of svc connect: %q", got)
	}
}

func (c *commandLine) changesExtensions(w spec.World, db ownDatabase) {
	c.Helper()
	check.NoError(c, w.Operator.QualifyExtensions())
	c.asOwner(db, "CREATE TYPE citext AS (a int)")
	status := c.exec(1, "", c.program, "databases", "extensions", "install", db.name, "citext", "--wait", "--jq", ".error.code")
	if status != "EXTENSION_PREPARATION_FAILED" {
		c.Errorf("an extension whose name is in use: %q", status)
	}
	c.want(agenttest.Supported(extension.PgCrypto),
		"databases", "extensions", "install", db.name, "pgcrypto", "--wait", "--jq", ".result.installedVersion")
	c.asOwner(db, "CREATE EXTENSION pg_trgm VERSION '1.5'")
	c.want("1.6", "databases", "extensions", "upgrade", db.name, "pg_trgm", "--wait", "--jq", ".result.installedVersion")
}

// givesARole makes a role, which logs in with its new password once it is rotated.
func (c *commandLine) givesARole(db ownDatabase) {
	c.Helper()
	c.run("", "managed", "custom-create", db.name, "Reports", "--access-profile", "read_only", "--connection-limit", "2")
	c.want("1000", "psql", db.name, "--role", "Reports", "--", "-Atc", countItems)
	before := c.run("", "connect", db.name, "--role", "Reports", "--env", "--jq", ".PGPASSWORD")
	c.run("", "managed", "custom-rotate", db.name, "Reports", "--yes", "--wait")
	if after := c.run("", "connect", db.name, "--role", "Reports", "--env", "--jq", ".PGPASSWORD"); after == before {
		c.Error("the role's password is the old one")
	}
	c.want("1000", "psql", db.name, "--role", "Reports", "--", "-Atc", countItems)
}

// backsUp makes a backup, and finds the data in the file that comes down.
func (c *commandLine) backsUp(db ownDatabase) {
	c.Helper()
	c.want("succeeded", "backups", "create", db.name, "--wait", "--jq", ".status")
	c.run("", "backups", "download", db.name, "latest", "-o", "backup.sql.gz")
	file := check.Must(os.Open(filepath.Join(c.folder, "backup.sql.gz")))(c)
	defer file.Close()
	dump := check.Must(io.ReadAll(check.Must(gzip.NewReader(file))(c)))(c)
	if !bytes.Contains(dump, []byte("COPY public.item (id) FROM stdin;\n1\n2\n")) {
		c.Errorf("the backup has %d bytes, and not the table", len(dump))
	}
}

// rotatesTheOwner returns the new password.
func (c *commandLine) rotatesTheOwner(db ownDatabase) string {
	c.Helper()
	before := db.password
	db.password = c.run("", "managed", "logins-rotate", db.name, "owner", "--yes", "--wait", "--jq", ".password")
	if got := c.asOwner(db, countItems); got != "1000" {
		c.Errorf("with the new password: %q", got)
	}
	c.with("PGPASSWORD="+before).exec(2, "", c.program, "psql", db.name, "--", "-c", countItems)
	return db.password
}

func (c *commandLine) deletesAndRecovers(w spec.World, db ownDatabase) {
	c.Helper()
	of := id.DatabaseID(c.run("", "databases", "get", db.name, "--jq", ".id"))
	check.NoError(c, w.Operator.Enroll(of, "all"))
	c.run("", "databases", "delete", db.name, "--yes", "--wait")
	c.want(db.name+" recoverable", "databases", "deleted", "--jq", `.[] | .name + " " + .recoveryStatus`)
	c.want("succeeded", "databases", "recover", db.name, "--wait", "--jq", ".status")
	if got := c.asOwner(db, countItems); got != "1000" {
		c.Errorf("recovered, with the password that it had: %q", got)
	}
}

// opensAPreview does what a pipeline does.
func (c *commandLine) opensAPreview(w spec.World) {
	c.Helper()
	url := c.run("", "previews", "create", "pull/17", "--jq", ".connection.connectionString")
	if got, err := w.SQL.Psql(url, "SELECT 1"); err != nil || got != "1" {
		c.Errorf("the preview says %q, %v", got, err)
	}
	c.want(url, "previews", "create", "pull/17", "--jq", ".connection.connectionString")
	c.run("", "previews", "delete", "--ref", "pull/17", "--yes")
}
