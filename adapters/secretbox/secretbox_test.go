package secretbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
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

func TestKeyRingConformance(t *testing.T) {
	first := keyset(t)
	both, _ := staged(t, first)
	conformance.KeyRing(t, func(t *testing.T) (b, f ports.KeyRing) { return parse(t, both), parse(t, first) })
}

func TestFakeKeyRingConformance(t *testing.T) {
	conformance.KeyRing(t, func(*testing.T) (b, f ports.KeyRing) { return fakebox.NewRing("1", "2"), fakebox.NewRing("1") })
}

// A key is staged once: what an earlier attempt has left is taken, and a fresh one is made only where all are known.
func TestStaging(t *testing.T) {
	first := keyset(t)
	known := check.Must(parse(t, first).Keys())(t)
	second, f := staged(t, first)
	if known.Has(f) || !check.Must(parse(t, second).Keys())(t).Has(f) || check.Must(parse(t, second).Keys())(t).Own != known.Own {
		t.Errorf("the staged key is %s", f)
	}
	again, same, err := secretbox.StageKeyset(second, known.Keys)
	if err != nil || same != f || string(again) != string(second) {
		t.Errorf("staged again: %s, then %s (%v)", f, same, err)
	}
	third, other, err := secretbox.StageKeyset(second, append(known.Keys, f))
	if n := len(check.Must(parse(t, third).Keys())(t).Keys); err != nil || other == f || n != 3 {
		t.Errorf("a further one: %s of %d (%v)", other, n, err)
	}
}

// Fingerprints are those of the keys, whatever else stands in the ring, and show nothing of them.
func TestFingerprints(t *testing.T) {
	first := keyset(t)
	before := check.Must(parse(t, first).Keys())(t)
	second, f := staged(t, first)
	promoted := check.Must(secretbox.PromoteKeyset(second, f))(t)
	after := check.Must(parse(t, promoted).Keys())(t)
	if !after.Has(before.Own) || after.Own != f || len(f) != 32 {
		t.Errorf("%v became %v, with %s", before, after, f)
	}
	dropped := check.Must(parse(t, check.Must(secretbox.DropKeys(promoted, after.Keys))(t)).Keys())(t)
	if len(dropped.Keys) != 1 || dropped.Own != f {
		t.Errorf("without all keys it has %v", dropped)
	}
	if _, err := secretbox.PromoteKeyset(first, f); !errors.Is(err, secretbox.ErrNoSuchKey) {
		t.Errorf("promoting a key of another ring: %v", err)
	}
	for _, text := range []string{string(first), string(promoted)} {
		if strings.Contains(text, string(f)) || strings.Contains(text, string(before.Own)) {
			t.Error("a fingerprint is a part of the ring")
		}
	}
}

func TestPromotionKeepsOldValuesReadable(t *testing.T) {
	first := keyset(t)
	old := seal(t, parse(t, first), "old")
	both, f := staged(t, first)
	promoted := check.Must(secretbox.PromoteKeyset(both, f))(t)
	fresh := seal(t, parse(t, promoted), "fresh")
	wantOpens(t, parse(t, promoted), old, "old")
	wantOpens(t, parse(t, both), fresh, "fresh")
	wantUnreadable(t, parse(t, first), fresh)
	pruned := parse(t, check.Must(secretbox.DropKeys(promoted, check.Must(parse(t, first).Keys())(t).Keys))(t))
	wantOpens(t, pruned, fresh, "fresh")
	wantUnreadable(t, pruned, old)
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
