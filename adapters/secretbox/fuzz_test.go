package secretbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
)

// Whatever stands in the place of a key ring, it is refused without a word of it, or it seals what it opens again, under its own
// name and for the same context alone, also after each step of a rotation.
func FuzzRing(f *testing.F) {
	text := func(ring []byte, err error) string { return string(check.Must(ring, err)(f)) }
	good := text(secretbox.NewKeyset())
	ring, fresh, err := secretbox.StageKeyset([]byte(good), nil)
	two := text(ring, err)
	for _, seed := range []string{
		"", "{}", "null", good, two, text(secretbox.PromoteKeyset([]byte(two), fresh)), strings.Replace(good, `"TINK"`, `"RAW"`, 1),
		strings.Replace(good, `"TINK"`, `"CRUNCHY"`, 1), strings.Replace(good, `"ENABLED"`, `"DISABLED"`, 1),
		strings.Replace(good, "AesGcmKey", "AesGcmSivKey", 1), strings.Replace(good, `"value":"`, `"value":"GhA`, 1),
		strings.Replace(good, `"keyData":{`, `"keyData":null,"x":{`, 1), `{"primaryKeyId":1,"key":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		box, err := secretbox.Parse(text)
		if err != nil {
			if !errors.Is(err, secretbox.ErrKeyset) || err.Error() != secretbox.ErrKeyset.Error() {
				t.Fatalf("%v", err)
			}
			return
		}
		known := check.Must(box.Keys())(t)
		sealed := check.Must(box.Seal([]byte("secret"), "here"))(t)
		if by := box.SealedBy(sealed); by != known.Own || by == "" {
			t.Errorf("%q has sealed, and not %q", by, known.Own)
		}
		opens(t, box, sealed)
		if _, err := box.Open(sealed, "there"); !errors.Is(err, secretbox.ErrUnreadable) {
			t.Errorf("elsewhere: %v", err)
		}
		staged, next, err := secretbox.StageKeyset(text, known.Keys)
		check.NoError(t, err)
		promoted := check.Must(secretbox.PromoteKeyset(staged, next))(t)
		opens(t, check.Must(secretbox.Parse(promoted))(t), sealed)
		dropped := check.Must(secretbox.Parse(check.Must(secretbox.DropKeys(promoted, known.Keys))(t)))(t)
		if left := check.Must(dropped.Keys())(t); left.Own != next || len(left.Keys) != 1 {
			t.Errorf("after the rotation, %+v is left", left)
		}
	})
}

func opens(t *testing.T, box *secretbox.Box, sealed []byte) {
	t.Helper()
	if plain, err := box.Open(sealed, "here"); err != nil || string(plain) != "secret" {
		t.Errorf("%q, %v", plain, err)
	}
}
