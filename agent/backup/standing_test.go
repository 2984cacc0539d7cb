package backup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// What a request finds of its backup, by what is in the store.
func TestStanding(t *testing.T) {
	const other id.OperationID = "33333333-3333-4333-8333-333333333333"
	own := stood.OperationID
	for what, c := range map[string]struct {
		by         id.OperationID // who made the file; empty: nobody
		open       bool           // it was not committed
		marked     bool           // as verified
		unreadable bool           // the mark
		torn       bool           // the manifest
		want       standing       // of a request that asks for a verification
		failing    bool
		plain      standing // of one that does not
	}{
		"no file":                  {want: nothing, plain: nothing},
		"a file without commit":    {by: own, open: true, want: nothing, plain: nothing},
		"another's file":           {by: other, want: foreign, plain: foreign},
		"another's, verified":      {by: other, marked: true, want: foreign, plain: foreign},
		"a file":                   {by: own, want: unverified, plain: complete},
		"a file, verified":         {by: own, marked: true, want: complete, plain: complete},
		"a manifest of nobody":     {by: other, torn: true, want: damaged, plain: damaged},
		"a mark that nobody reads": {by: own, marked: true, unreadable: true, want: unverified, failing: true, plain: complete},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			files := openStore(t, root, nil)
			req := stood
			if c.by != "" {
				keep(t, files, c.by, !c.open, c.marked)
			}
			if c.unreadable {
				spoil(t, root, ".verified")
			}
			if c.torn {
				spoil(t, root, ".manifest")
			}
			b := New(Config{}, copies.New(&copies.Deps{Files: files}))
			got, result, err := b.standing(t.Context(), req)
			if got != c.plain || err != nil || (result.Manifest.OperationID == own) != (got == complete) || result.VerifiedAt != nil {
				t.Errorf("without a verification: %d, %+v, %v", got, result, err)
			}
			req.Verify = true
			got, result, err = b.standing(t.Context(), req)
			if got != c.want || (err != nil) != c.failing || (result.Manifest.OperationID == own) != (got >= unverified) ||
				(result.VerifiedAt != nil) != (got == complete) {
				t.Errorf("with one: %d, %+v, %v", got, result, err)
			}
			if whole, err := b.Complete(t.Context(), req); whole != (c.want == complete) || (err != nil) != c.failing {
				t.Errorf("complete: %v, %v", whole, err)
			}
		})
	}
}

// A file that passes and cannot be looked up may be there: no other one is made in its place.
func TestAFileThatPassesIsMadeOnce(t *testing.T) {
	root := t.TempDir()
	files := openStore(t, root, nil)
	req := stood
	req.Passing = true
	keep(t, files.Passing(), req.OperationID, true, false)
	records := check.Must(filepath.Glob(filepath.Join(root, "passing", string(req.DatabaseID), "*.set")))(t)
	if len(records) != 1 {
		t.Fatalf("records %v", records)
	}
	check.NoError(t, os.Remove(records[0]))
	check.NoError(t, os.Mkdir(records[0], 0o700)) // which the disk gives no file of
	b := New(Config{}, copies.New(&copies.Deps{Files: files}))
	if found, _, err := b.standsFor(t.Context(), req); err == nil {
		t.Errorf("it is taken for %d", found)
	}
}

// stood is the request whose backup is looked up.
var stood = Request{
	OperationID: "22222222-2222-4222-8222-222222222222", DatabaseID: "11111111-1111-4111-8111-111111111111",
	Filename: "20260301_120000.sql.gz",
}

func openStore(t *testing.T, root string, blobs blob.Store) *store.Store {
	t.Helper()
	files := store.New(root, store.Options{Blobs: blobs, Reserve: 1, Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		return bytes.Repeat([]byte("k"), backup.KeyBytes), nil
	}})
	check.NoError(t, files.Sweep())
	return files
}

// spoil leaves a companion of the backup that cannot be read.
func spoil(t *testing.T, root, ending string) {
	t.Helper()
	for _, path := range check.Must(filepath.Glob(filepath.Join(root, string(stood.DatabaseID), "*"+ending)))(t) {
		check.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	}
}

// keep writes the files of a backup.
func keep(t *testing.T, files *store.Store, by id.OperationID, commit, verified bool) {
	t.Helper()
	draft, m := drafted(t, files, by)
	if commit {
		check.NoError(t, draft.Commit(t.Context(), func(string) {}))
	}
	if verified {
		check.NoError(t, files.MarkVerified(t.Context(), m, time.Now()))
	}
}

// drafted is a set that can be committed.
func drafted(t *testing.T, files *store.Store, by id.OperationID) (*store.Draft, backup.StoredManifest) {
	t.Helper()
	m := backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: stood.DatabaseID, Filename: stood.Filename, OperationID: by,
	}
	draft := check.Must(files.Begin(t.Context(), m.DatabaseID, m.Filename))(t)
	m.File = check.Must(check.Must(draft.Data())(t).Finish())(t)
	m.Sidecar = check.Must(check.Must(draft.Sidecar())(t).Finish())(t)
	return draft, check.Must(draft.Prepare(m))(t)
}
