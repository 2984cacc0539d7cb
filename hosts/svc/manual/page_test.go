package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/svc/cli"
)

func TestGoldenPage(t *testing.T) {
	want, path := page(cli.Root()), filepath.Join("..", "..", "..", "docs", "use", "svc.md")
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("docs/use/svc.md does not follow from the commands any more; run make generate (%v)", err)
	}
}
