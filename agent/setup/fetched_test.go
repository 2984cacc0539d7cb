package setup_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// TestTheFetchedServerOffersNoLanguage is about the server that "make toolchain" fetches. A machine's own is its owner's matter.
func TestTheFetchedServerOffersNoLanguage(t *testing.T) {
	tools, err := toolchain.Find()
	if err != nil {
		t.Fatal(err)
	}
	root, err := toolchain.Root()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(tools.Postgres, filepath.Join(root, toolchain.Dir)+string(filepath.Separator)) {
		return
	}
	db, err := sql.Open("postgres", clustertest.Postgres(t).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if found, err := floors.OfferedLanguages(t.Context(), db); err != nil || len(found) > 0 {
		t.Errorf("it offers %v (%v); fetch.sh should have taken that out, so run make toolchain", found, err)
	}
}
