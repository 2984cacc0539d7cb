package search

import (
	"bytes"
	"testing"
)

// What a search keeps, it finds again.
func TestKeptInputsAreInTheCorpus(t *testing.T) {
	dir, input := t.TempDir(), make([]byte, 256)
	for i := range input {
		input[i] = byte(i)
	}
	keepInput(t, dir, input)
	if kept := corpus(t, dir); len(kept) != 1 || !bytes.Equal(kept[0], input) {
		t.Errorf("%q", kept)
	}
}
