package secretbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
)

const context = "login/1"

func keyset(t *testing.T) []byte {
	t.Helper()
	return check.Must(secretbox.NewKeyset())(t)
}

func change(t *testing.T, ring []byte, how func([]byte) ([]byte, error)) []byte {
	t.Helper()
	return check.Must(how(ring))(t)
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
	if opened, err := box.Open(text, context); !errors.Is(err, secretbox.ErrUnreadable) {
		t.Errorf("got %q (%v), want ErrUnreadable", opened, err)
	}
}

// wantOnlyFile finds temporary files that were left behind.
func wantOnlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}
