package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestTheSameFilesAreWrittenAgain(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	check.NoError(t, write(first))
	check.NoError(t, write(second))
	old := filepath.Join(second, "man", "man1", "svc-gone.1")
	check.NoError(t, os.WriteFile(old, nil, 0o644))
	check.NoError(t, write(second))
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", first, second).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
