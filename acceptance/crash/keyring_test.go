package crash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/ports"
)

// changesTheRing has a host on another machine, with a ring's file of its own, be out of step with the others: the key is changed
// only when that host is ready, a death in that loses nothing, and with another ring the host neither starts nor writes.
func changesTheRing(t *testing.T, w *world) {
	must(w.meta.Exec("UPDATE keyring_hosts SET seen_at = '2000-01-01'"))(t) // other tests have killed some for good
	dir := t.TempDir()
	theirs, wrong := filepath.Join(dir, "theirs.json"), filepath.Join(dir, "wrong.json")
	must(secretbox.Create(wrong))(t)
	for file, says := range map[string]string{
		wrong:                      "does not have the key",
		filepath.Join(dir, "none"): "restore the ring from its backup",
	} {
		_, err := w.StartAPI(soon(t), "", "--keyring-file", file)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) ||
			strings.Contains(err.Error(), "secrets init") {
			t.Errorf("with %s: %v", filepath.Base(file), err)
		}
	}
	if _, err := w.Admin(soon(t), "secrets", "init", "--keyring-file", filepath.Join(dir, "another")); err == nil ||
		!strings.Contains(err.Error(), "restore that from its backup") {
		t.Errorf("another ring: %v", err)
	}

	w.copiesRing(t, w.KeyringFile(), theirs)
	other := must(w.StartAPI(soon(t), "", "--keyring-file", theirs))(t)
	defer func() { noError(t, other.Stop(soon(t))) }()
	owner := w.newUser(t, 20)
	write := func() {
		t.Helper()
		for _, host := range []*stack.Host{w.api, other} {
			w.logsIn(t, owner.create(t, host, newName("ring")))
		}
	}
	for _, point := range keyrings.CrashPoints {
		t.Run(point, func(t *testing.T) {
			must(w.Admin(soon(t), "secrets", "stage"))(t)
			_, err := w.Admin(soon(t), "secrets", "promote", "--wait=2s")
			if err == nil || strings.Count(err.Error(), `"api `) != 1 || !strings.Contains(err.Error(), "copy the ring's file") {
				t.Errorf("promoted before the other host has the key: %v", err)
			}
			write()
			w.copiesRing(t, w.KeyringFile(), theirs)
			eventually(t, "the other host has the key", func() (bool, string) {
				p := must(w.LaunchAdmin(point, "secrets", "promote"))(t)
				noError(t, p.AwaitEnd(soon(t)))
				return p.Killed(), string(must(p.Log())(t))
			})
			write()
			w.opensAll(t, theirs)
			if point == keyrings.CrashPromoted {
				must(w.Admin(soon(t), "secrets", "promote"))(t)
			} else {
				batch := must(w.StartBatch(soon(t), ""))(t)
				defer func() { noError(t, batch.Stop(soon(t))) }()
			}
			eventually(t, "the promotion is finished", func() (done bool, now string) {
				const look = "SELECT resealed_at IS NOT NULL FROM keyring_keys WHERE status = 'primary'"
				noError(t, w.meta.QueryRow(look).Scan(&done))
				return done, "it is not"
			})
			write()
			for _, file := range []string{theirs, w.KeyringFile()} { // so that all look at once which key encrypts
				w.copiesRing(t, w.KeyringFile(), file)
			}
			must(w.Admin(soon(t), "secrets", "prune", "--settle=0s"))(t)
			w.copiesRing(t, w.KeyringFile(), theirs)
			if keys := must(must(secretbox.Load(theirs))(t).Keys())(t).Keys; len(keys) != 1 {
				t.Errorf("the ring has %d keys", len(keys))
			}
			w.opensAll(t, theirs)
			write()
		})
	}

	kept := filepath.Join(dir, "kept.json")
	w.copiesRing(t, theirs, kept)
	w.copiesRing(t, wrong, theirs)
	eventually(t, "a host with another ring is not ready", func() (bool, string) {
		return other.Ready(soon(t)) != nil, "it is"
	})
	_, err := owner.at(other).Databases.Create(soon(t), wire.CreateDatabase{Name: newName("ring"), DisplayName: "lost"})
	if err == nil {
		t.Error("a host with another ring has made a database")
	}
	w.opensAll(t, kept)
	w.copiesRing(t, kept, theirs)
	noError(t, other.AwaitReady(soon(t)))
	write()
}

func (w *world) copiesRing(t *testing.T, from, to string) {
	t.Helper()
	noError(t, os.WriteFile(to+".new", must(os.ReadFile(from))(t), 0o600))
	noError(t, os.Rename(to+".new", to))
}

// opensAll fails the test where a ring does not open a stored secret.
func (w *world) opensAll(t *testing.T, file string) {
	t.Helper()
	box := must(secretbox.Load(file))(t)
	store := must(postgres.Open(soon(t), postgres.Config{URL: w.MetadataURL(), MaxConnections: 1, Brief: true}))(t)
	defer func() { noError(t, store.Close()) }()
	n := 0
	noError(t, store.View(soon(t), func(ctx context.Context, tx ports.Tx) error {
		for after := ""; ; {
			batch, err := tx.SealedValues().Next(ctx, after, 100)
			if err != nil || len(batch) == 0 {
				return err
			}
			for _, v := range batch {
				n++
				if _, err := box.Open(v.Sealed, v.Context); err != nil {
					t.Errorf("%s: %v", v.Ref, err)
				}
			}
			after = batch[len(batch)-1].Ref
		}
	}))
	if n == 0 {
		t.Error("nothing is stored")
	}
}
