package crash_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/command"
)

// A server that keeps an archive is given its key once it is registered, and then every database has a window. The metadata keep
// the key, through a change of the ring's too, and nobody is shown it.
func TestAServerGetsItsArchive(t *testing.T) {
	t.Parallel()
	w := startStack(t, func(o *stack.Options) { o.Archive = true })
	owner := w.newUser(t, 5)
	shop := owner.create(t, w.api, "shop")
	eventually(t, "a window", func() (bool, string) {
		window, err := owner.at(w.api).Recovery.GetWindow(soon(t), shop.ID)
		return err == nil && window.From != nil, fmt.Sprint(window, err)
	})
	key := must(os.ReadFile(filepath.Join(w.BackupDir(), "archive", "key")))(t)
	if err := (command.SetArchiveKey{Key: string(key)}).Check(); err != nil {
		t.Error(err)
	}

	sealed := func() (value []byte) {
		t.Helper()
		noError(t, w.meta.QueryRow("SELECT sealed_archive_key FROM servers").Scan(&value))
		return value
	}
	before := sealed()
	must(w.Admin(soon(t), "secrets", "stage"))(t)
	must(w.Admin(soon(t), "secrets", "promote"))(t)
	eventually(t, "the key is encrypted anew", func() (bool, string) { return !bytes.Equal(sealed(), before), "it is not" })
	w.opensAll(t, w.KeyringFile())
	w.settled(t) // the doctor compares the keys

	for _, log := range must(filepath.Glob(filepath.Join(filepath.Dir(w.KeyringFile()), "*.log")))(t) {
		if bytes.Contains(must(os.ReadFile(log))(t), key) {
			t.Errorf("%s has the key", filepath.Base(log))
		}
	}
}
