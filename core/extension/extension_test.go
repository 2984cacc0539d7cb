package extension_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/extension"
)

func TestWhatIsAVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"1.6": true, "12.10": true, "": false, "1": false, "1.6.1": false, "1.": false, ".6": false, "1.6 ": false, "1.6\n": false,
		"1.6--1.7": false, "'1.6": false, "12345.1": false, "unpackaged": false,
	} {
		if got := extension.IsVersion(text); got != want {
			t.Errorf("%q is a version: %t", text, got)
		}
	}
}
