package clustertest

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// NewPrivate starts a cluster of the test's own with PrivateTools.
func NewPrivate(t testing.TB) (pg *cluster.Postgres, extensions string) {
	t.Helper()
	o := options(t.TempDir(), nil)
	made, err := cluster.Run(t.Context(), o) // by the usual program: of each other one, a template would be made and kept
	if err == nil {
		err = made.Stop(t.Context(), cluster.Fast)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Tools, extensions = PrivateTools(t)
	return start(t, o), extensions
}

// PrivateTools has a copy of the program postgres and of its shared files, so that the test may change what is in the folder of
// extensions. That begins without those that bring procedural languages, whatever the machine has.
func PrivateTools(t testing.TB) (tools toolchain.Tools, extensions string) {
	t.Helper()
	// Not below t.TempDir, which other users cannot enter.
	root := check.Must(os.MkdirTemp("", "pgherd-server-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(root) }) // in the system's folder for such
	tools = check.Must(toolchain.Find())(t)
	at := folders(t)
	tools.Postgres = filepath.Join(root, at.rel("BINDIR"), "postgres")
	share := filepath.Join(root, at.rel("SHAREDIR"))
	check.NoError(t, errors.Join(os.Chmod(root, 0o755),
		copyProgram(filepath.Join(at.of["BINDIR"], "postgres"), tools.Postgres),
		linkAll(at.of["SHAREDIR"], share),
		os.CopyFS(filepath.Join(share, "extension"), os.DirFS(filepath.Join(at.of["SHAREDIR"], "extension"))),
		link(at.of["LIBDIR"], filepath.Join(root, at.rel("LIBDIR"))),
		link(at.of["PKGLIBDIR"], filepath.Join(root, at.rel("PKGLIBDIR")))))
	extensions = filepath.Join(share, "extension")
	for _, pattern := range []string{"*plperl*", "*pltcl*", "*plpython*"} {
		for _, path := range check.Must(filepath.Glob(filepath.Join(extensions, pattern)))(t) {
			check.NoError(t, os.Remove(path))
		}
	}
	return tools, extensions
}

// layout is where the server's files are, by the names of pg_config. A server finds them by their place relative to its program.
type layout struct {
	of   map[string]string
	root string
}

func (l layout) rel(name string) string { return strings.TrimPrefix(l.of[name], l.root) }

// folders asks the shared cluster.
func folders(t testing.TB) layout {
	t.Helper()
	db := check.Must(sql.Open("postgres", Postgres(t).URL("postgres")))(t)
	defer db.Close()
	l := layout{of: map[string]string{}}
	for _, name := range []string{"BINDIR", "SHAREDIR", "LIBDIR", "PKGLIBDIR"} {
		var path string
		row := db.QueryRowContext(t.Context(), "SELECT setting FROM pg_config WHERE name = $1", name)
		check.NoError(t, row.Scan(&path))
		l.of[name] = path
	}
	for l.root = l.of["BINDIR"]; !strings.HasPrefix(l.of["SHAREDIR"], l.root+"/") ||
		!strings.HasPrefix(l.of["PKGLIBDIR"], l.root+"/"); l.root = filepath.Dir(l.root) {
		if l.root == "/" {
			t.Fatalf("the server's files have no folder in common: %v", l.of)
		}
	}
	return l
}

func copyProgram(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// linkAll links what is in a folder, except for the folder of extensions.
func linkAll(from, to string) error {
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Name() != "extension" {
			err = errors.Join(err, link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
	}
	return err
}

// link makes a link to a folder, unless it is there already by a link to one above it.
func link(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Symlink(from, to)
}

// OfferLanguage puts a trusted language into a folder of extensions: PL/pgSQL by another name.
func OfferLanguage(t testing.TB, extensions, extension, language string) {
	t.Helper()
	script := strings.ReplaceAll(`CREATE FUNCTION made_call_handler() RETURNS language_handler
		LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_call_handler';
	CREATE FUNCTION made_inline_handler(internal) RETURNS void STRICT LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_inline_handler';
	CREATE TRUSTED LANGUAGE made HANDLER made_call_handler INLINE made_inline_handler;
	ALTER LANGUAGE made OWNER TO @extowner@;`, "made", language)
	const control = "default_version = '1.0'\nsuperuser = true\ntrusted = true\nrelocatable = false\nschema = pg_catalog\n"
	check.NoError(t, os.WriteFile(filepath.Join(extensions, extension+"--1.0.sql"), []byte(script), 0o644))
	check.NoError(t, os.WriteFile(filepath.Join(extensions, extension+".control"), []byte(control), 0o644))
}
