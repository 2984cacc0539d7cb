package svc

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pgherd/pgherd/acceptance/sample"
)

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: sample.OneIn(t, 6, scripts(t)), Setup: setup, Cmds: verbs(), RequireUniqueNames: true,
		UpdateScripts: os.Getenv("PGHERD_UPDATE_GOLDEN") != "",
	})
}

// scripts returns the files below testdata/script.
func scripts(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("testdata", "script"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txtar" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
