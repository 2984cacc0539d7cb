package secretbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/ports"
)

func TestConformance(t *testing.T) {
	ring := keyset(t)
	path := t.TempDir() + "/ring.json"
	create(t, path)
	makers := map[string]func(t *testing.T) ports.SecretBox{
		"text": func(t *testing.T) ports.SecretBox { return parse(t, ring) },
		"file": func(t *testing.T) ports.SecretBox { return load(t, path) },
		"fake": func(*testing.T) ports.SecretBox { return fakebox.New() },
	}
	for name, newBox := range makers {
		t.Run(name, func(t *testing.T) { conformance.SecretBox(t, newBox) })
	}
}

func TestRotationKeepsOldValuesReadable(t *testing.T) {
	first := keyset(t)
	old := seal(t, parse(t, first), "old")
	second := change(t, first, secretbox.RotateKeyset)
	box := parse(t, second)

	if !box.NeedsReseal(old) {
		t.Error("a value of the old primary does not need to be sealed again")
	}
	fresh := seal(t, box, "fresh")
	if box.NeedsReseal(fresh) {
		t.Error("a value of the new primary needs to be sealed again")
	}
	wantOpens(t, box, old, "old")
	wantOpens(t, box, fresh, "fresh")
	wantUnreadable(t, parse(t, first), fresh)
}

func TestPruneDropsAllButThePrimary(t *testing.T) {
	first := keyset(t)
	old := seal(t, parse(t, first), "old")
	rotated := change(t, change(t, first, secretbox.RotateKeyset), secretbox.RotateKeyset)
	fresh := seal(t, parse(t, rotated), "fresh")
	box := parse(t, change(t, rotated, secretbox.PruneKeyset))

	wantOpens(t, box, fresh, "fresh")
	wantUnreadable(t, box, old)
	if box.NeedsReseal(fresh) {
		t.Error("pruning made another primary")
	}
}

func TestValuesOfAnotherRingAreUnreadable(t *testing.T) {
	wantUnreadable(t, parse(t, keyset(t)), seal(t, parse(t, keyset(t)), "theirs"))
}

func TestKeysetErrorsShowNoKey(t *testing.T) {
	good := string(keyset(t))
	value := good[strings.Index(good, `"value":`):][:60]
	for name, text := range map[string]string{
		"empty":        "",
		"no JSON":      "hello",
		"empty object": "{}",
		"cut off":      good[:len(good)-10],
		"other key":    strings.Replace(good, "AesGcmKey", "NoSuchKey", 1),
		"raw key":      strings.Replace(good, `"TINK"`, `"RAW"`, 1),
		"no primary":   strings.Replace(good, `"primaryKeyId":`, `"primaryKeyId":1`, 1),
		"quoted value": strings.Replace(good, `"keyData":`, value+`,"keyData":`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if text == good {
				t.Fatal("the case changes nothing")
			}
			_, err := secretbox.Parse([]byte(text))
			if !errors.Is(err, secretbox.ErrKeyset) {
				t.Fatalf("got %v", err)
			}
			if err.Error() != secretbox.ErrKeyset.Error() {
				t.Errorf("the error says more than the fixed text: %v", err)
			}
		})
	}
}

func TestSealedValueIs33BytesLonger(t *testing.T) {
	if n := len(seal(t, parse(t, keyset(t)), "12345678")); n != 8+33 {
		t.Errorf("8 bytes became %d", n)
	}
}
