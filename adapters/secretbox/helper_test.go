package secretbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

const context = "login/1"

func keyset(t *testing.T) []byte {
	t.Helper()
	return check.Must(secretbox.NewKeyset())(t)
}

// staged is a ring with one more key than it had.
func staged(t *testing.T, ring []byte) ([]byte, keyring.Fingerprint) {
	t.Helper()
	text, f, err := secretbox.StageKeyset(ring, check.Must(parse(t, ring).Keys())(t).Keys)
	check.NoError(t, err)
	return text, f
}

// rotates gives the ring in a file a fresh primary.
func rotates(t *testing.T, path string) (before, after keyring.Fingerprint) {
	t.Helper()
	known := check.Must(load(t, path).Keys())(t)
	after = check.Must(secretbox.Stage(path, known.Keys))(t)
	check.NoError(t, secretbox.Promote(path, after))
	return known.Own, after
}

func parse(t *testing.T, ring []byte) *secretbox.Box {
	t.Helper()
	return check.Must(secretbox.Parse(ring))(t)
}

func create(t *testing.T, path string) *secretbox.Box {
	t.Helper()
	return check.Must(secretbox.Create(path))(t)
}

func load(t *testing.T, path string) *secretbox.Box {
	t.Helper()
	return check.Must(secretbox.Load(path))(t)
}

func seal(t *testing.T, box *secretbox.Box, plaintext string) []byte {
	t.Helper()
	text, err := box.Seal([]byte(plaintext), context)
	if err != nil {
		t.Error(err)
	}
	return text
}

func wantOpens(t *testing.T, box *secretbox.Box, text []byte, plaintext string) {
	t.Helper()
	if opened, err := box.Open(text, context); err != nil || string(opened) != plaintext {
		t.Errorf("got %q (%v), want %q", opened, err, plaintext)
	}
}

func wantUnreadable(t *testing.T, box *secretbox.Box, text []byte) {
	t.Helper()
	if opened, err := box.Open(text, context); !errors.Is(err, secretbox.ErrUnreadable) || errors.Is(err, ports.ErrNoRing) {
		t.Errorf("got %q (%v), want ErrUnreadable", opened, err)
	}
}

// refuses reports whether a box refuses for want of its ring, and why.
func refuses(err, why error) bool { return errors.Is(err, ports.ErrNoRing) && errors.Is(err, why) }

// wantOnlyFile finds temporary files that were left behind.
func wantOnlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}
