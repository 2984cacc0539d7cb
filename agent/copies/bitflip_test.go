package copies

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

const flippedName backup.Filename = "20260301_120000.sql.gz"

// A set with a flipped bit, or cut off, at any of 67 offsets of one of its blobs is not verified. What a whole restore adds to
// these checks is the server's and the comparison's.
func TestNoFlippedBitIsVerified(t *testing.T) {
	x, of, dir := wholeSet(t)
	if err := x.intact(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"set", "data", "schema", "manifest"} {
		path := check.Must(filepath.Glob(filepath.Join(dir, "*."+name)))(t)[0]
		whole := check.Must(os.ReadFile(path))(t)
		for n := range 67 {
			at := n * len(whole) / 67
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << chance.IntN(8)
			longer := append(bytes.Clone(whole), whole[at])
			for how, text := range map[string][]byte{"flipped": flipped, "cut off": whole[:at], "longer": longer} {
				check.NoError(t, os.WriteFile(path, text, 0o600))
				if err := x.intact(t.Context(), of); !fault.Has(err, fault.BackupNotVerified) {
					t.Errorf("%s, %s at %d of %d: %v", name, how, at, len(whole), err)
				}
			}
		}
		check.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	if err := x.intact(t.Context(), of); err != nil {
		t.Error(err)
	}
}

// intact is what a verification or a restore checks of the files themselves.
func (x *Copies) intact(ctx context.Context, of id.DatabaseID) error {
	set, err := x.openSet(ctx, Request{Source: command.Source{DatabaseID: of, Filename: flippedName}})
	if err != nil {
		return err
	}
	defer set.close()
	sum, err := set.readFile(func(int64, int64) {}, toItsEnd)
	if err == nil {
		err = set.isFile(sum)
	}
	return err
}

// toItsEnd reads a dump as a restore does.
func toItsEnd(text io.Reader) error {
	dump := dumpsql.NewReader(text, dumpsql.Limits{})
	for {
		if _, err := dump.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// wholeSet is a committed set of files, in a folder.
func wholeSet(t *testing.T) (x *Copies, of id.DatabaseID, dir string) {
	t.Helper()
	of = "11111111-1111-4111-8111-111111111111"
	root := t.TempDir()
	files := store.New(root, store.Options{Reserve: 1, Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		return bytes.Repeat([]byte("k"), backup.KeyBytes), nil
	}})
	check.NoError(t, files.Sweep())
	x = New(&Deps{Files: files})
	dump := "SET client_encoding = 'UTF8';\nCREATE TABLE t (n int, v text);\nCOPY t (n, v) FROM stdin;\n"
	for n := range 400 {
		dump += fmt.Sprintf("%d\tvalue %d\n", n, n*n)
	}
	m := backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: of, OperationID: "22222222-2222-4222-8222-222222222222", Filename: flippedName,
		Logins: []backup.Login{{Name: "shop", CanLogin: true}}, Grants: []backup.Grant{{Kind: "table", Object: "t", Grantee: "PUBLIC"}},
		Contents: backup.Contents{Rows: map[string]int64{"public.t": 400}},
	}
	c := &m.Contents
	objects := new(backup.Sum).Digest(nil)
	c.DigestSettings, c.Digests, c.LargeObjectDigest = backup.DigestSettings(), map[string]backup.TableDigest{}, &objects
	draft := check.Must(files.Begin(t.Context(), of, flippedName))(t)
	m.File = write(t, check.Must(draft.Data())(t), dump+"\\.\n")
	m.Sidecar = write(t, check.Must(draft.Sidecar())(t), "GRANT SELECT ON TABLE public.t TO PUBLIC;\n")
	check.Must(draft.Prepare(m))(t)
	check.NoError(t, draft.Commit(t.Context(), func(string) {}))
	return x, of, filepath.Join(root, string(of))
}

func write(t *testing.T, to *store.File, text string) backup.FileDigest {
	t.Helper()
	zip := gzip.NewWriter(to)
	_, err := io.WriteString(zip, text)
	check.NoError(t, errors.Join(err, zip.Close()))
	return check.Must(to.Finish())(t)
}
