package recovery

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyWhoHasAskedReadsTheAnswers(t *testing.T) {
	const op = "0189abcd-ef01-4234-8567-89abcdef0123"
	key := func(of byte) Question { return Question{Key: bytes.Repeat([]byte{of}, KeyBytes)} }
	at := time.Date(2026, 3, 1, 11, 30, 0, 0, time.UTC)
	want := SearchResult{Outcome: Always, Since: &at, Looks: []Sight{{At: at, Answer: Answer{Text: new("canary")}, Holds: true}}}
	sealed, err := key(1).Seal(op, want)
	if err != nil || bytes.Contains(sealed, []byte("canary")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	got, err := key(1).Open(op, sealed)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)/2] ^= 1
	for name, open := range map[string]func() (SearchResult, error){
		"another key":         func() (SearchResult, error) { return key(2).Open(op, sealed) },
		"another operation":   func() (SearchResult, error) { return key(1).Open("1189abcd-ef01-4234-8567-89abcdef0123", sealed) },
		"a flipped bit":       func() (SearchResult, error) { return key(1).Open(op, changed) },
		"a part":              func() (SearchResult, error) { return key(1).Open(op, sealed[:10]) },
		"nothing":             func() (SearchResult, error) { return key(1).Open(op, nil) },
		"a key that is none":  func() (SearchResult, error) { return Question{}.Open(op, sealed) },
		"a key of one letter": func() (SearchResult, error) { return Question{Key: []byte("k")}.Open(op, sealed) },
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s opens it", name)
		}
	}
	if _, err := (Question{}).Seal(op, want); err == nil {
		t.Error("it is sealed without a key")
	}
}
