package conformance

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// SecretBox is the suite of ports.SecretBox. newBox returns a box of one and the same ring each time.
func SecretBox(t *testing.T, newBox func(t *testing.T) ports.SecretBox) {
	t.Run("opens what it sealed", func(t *testing.T) { boxOpensWhatItSealed(t, newBox(t)) })
	t.Run("is bound to the context", func(t *testing.T) { boxIsBoundToContext(t, newBox(t)) })
	t.Run("notices every change", func(t *testing.T) { boxNoticesChange(t, newBox(t)) })
	t.Run("hides the plaintext", func(t *testing.T) { boxHidesPlaintext(t, newBox(t)) })
	t.Run("opens what another box of the ring sealed", func(t *testing.T) { boxSharesItsRing(t, newBox(t), newBox(t)) })
	t.Run("serves many at once", func(t *testing.T) { boxServesMany(t, newBox(t)) })
}

func boxOpensWhatItSealed(t *testing.T, box ports.SecretBox) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for _, plaintext := range [][]byte{{}, {0}, []byte("p4ssw0rd"), long} {
		given := slices.Clone(plaintext)
		opened, err := box.Open(sealed(t, box, given, "login/1"), "login/1")
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Errorf("%d bytes came back as %d bytes (%v)", len(plaintext), len(opened), err)
		}
		if !bytes.Equal(given, plaintext) {
			t.Errorf("Seal changed the %d bytes that it was given", len(plaintext))
		}
	}
}

func boxIsBoundToContext(t *testing.T, box ports.SecretBox) {
	text := sealed(t, box, []byte("p4ssw0rd"), "login/1")
	for _, context := range []string{"", "login/2", "login/", "login/11", "LOGIN/1", "login/1\x00"} {
		if opened, err := box.Open(text, context); err == nil {
			t.Errorf("opened %q under the context %q", opened, context)
		}
	}
	if _, err := box.Open(text, "login/1"); err != nil {
		t.Errorf("after the wrong contexts, under the right one: %v", err)
	}
}

func boxNoticesChange(t *testing.T, box ports.SecretBox) {
	text := sealed(t, box, []byte("p4ssw0rd"), "login/1")
	for i := range text {
		changed := slices.Clone(text)
		changed[i] ^= 1
		if opened, err := box.Open(changed, "login/1"); err == nil {
			t.Errorf("opened %q with byte %d changed", opened, i)
		}
	}
	for n := range len(text) {
		if opened, err := box.Open(text[:n], "login/1"); err == nil {
			t.Errorf("opened %q from the first %d bytes", opened, n)
		}
	}
	if opened, err := box.Open(append(slices.Clone(text), 0), "login/1"); err == nil {
		t.Errorf("opened %q with a byte added", opened)
	}
}

func boxHidesPlaintext(t *testing.T, box ports.SecretBox) {
	plaintext := []byte("correct horse battery staple")
	first, second := sealed(t, box, plaintext, "login/1"), sealed(t, box, plaintext, "login/1")
	if bytes.Equal(first, second) {
		t.Error("the same plaintext was sealed to the same bytes twice: equal secrets would show")
	}
	for n := 6; n <= len(plaintext); n++ {
		if bytes.Contains(first, plaintext[n-6:n]) {
			t.Errorf("the sealed value shows %q", plaintext[n-6:n])
		}
	}
}

func boxSharesItsRing(t *testing.T, one, other ports.SecretBox) {
	opened, err := other.Open(sealed(t, one, []byte("p4ssw0rd"), "login/1"), "login/1")
	if err != nil || string(opened) != "p4ssw0rd" {
		t.Errorf("another box opened %q (%v)", opened, err)
	}
}

func boxServesMany(t *testing.T, box ports.SecretBox) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			secret := []byte{byte(i), 1, 2, 3}
			for range 50 {
				text, err := box.Seal(secret, "login/1")
				if err != nil {
					t.Error(err)
					return
				}
				if opened, err := box.Open(text, "login/1"); err != nil || !bytes.Equal(opened, secret) {
					t.Errorf("%v came back as %v (%v)", secret, opened, err)
				}
			}
		})
	}
	all.Wait()
}

func sealed(t *testing.T, box ports.SecretBox, plaintext []byte, context string) []byte {
	t.Helper()
	text, err := box.Seal(plaintext, context)
	if err != nil {
		t.Fatalf("sealing %d bytes: %v", len(plaintext), err)
	}
	return text
}

// KeyRing is the suite of ports.KeyRing. newRing returns a ring of two keys and one of its first key alone, which encrypts.
func KeyRing(t *testing.T, newRing func(t *testing.T) (both, first ports.KeyRing)) {
	SecretBox(t, func(t *testing.T) ports.SecretBox { both, _ := newRing(t); return both })
	t.Run("seals with the key that it is told", func(t *testing.T) { ringSealsAsTold(t, newRing) })
	t.Run("refuses a key that it does not have", func(t *testing.T) {
		both, first := newRing(t)
		ringRefusesAnotherKey(t, first, ringKeys(t, both))
	})
}

func ringKeys(t *testing.T, ring ports.KeyRing) keyring.Ring {
	t.Helper()
	known, err := ring.Keys()
	if err != nil || !known.Has(known.Own) {
		t.Fatalf("the ring has %v (%v)", known, err)
	}
	return known
}

func ringSealsAsTold(t *testing.T, newRing func(t *testing.T) (both, first ports.KeyRing)) {
	both, first := newRing(t)
	known := ringKeys(t, both)
	if len(known.Keys) != 2 || known.Keys[0] == known.Keys[1] {
		t.Fatalf("the ring of two keys has %v", known.Keys)
	}
	if got := both.SealedBy(sealed(t, both, []byte("p4ssw0rd"), "login/1")); got != known.Own {
		t.Errorf("untold it seals with %s, not with %s", got, known.Own)
	}
	shared := ringKeys(t, first)
	for range 2 {
		for _, key := range known.Keys {
			if err := both.SealWith(key); err != nil {
				t.Fatal(err)
			}
			text := sealed(t, both, []byte("p4ssw0rd"), "login/1")
			if got := both.SealedBy(text); got != key {
				t.Errorf("it seals with %s instead of %s", got, key)
			}
			if opened, err := both.Open(text, "login/1"); err != nil || string(opened) != "p4ssw0rd" {
				t.Errorf("opened %q (%v)", opened, err)
			}
			_, err := first.Open(text, "login/1")
			if has := shared.Has(key); has != (err == nil) || has != (first.SealedBy(text) == key) {
				t.Errorf("the ring that has %v opens what %s has sealed: %v; it says %q", shared.Keys, key, err, first.SealedBy(text))
			}
		}
	}
}

// ringRefusesAnotherKey has a ring refuse to seal until it is told a key that it has.
func ringRefusesAnotherKey(t *testing.T, first ports.KeyRing, all keyring.Ring) {
	own := ringKeys(t, first).Own
	other := all.Keys[0]
	if other == own {
		other = all.Keys[1]
	}
	for _, key := range []keyring.Fingerprint{other, "0123"} {
		if err := first.SealWith(key); err == nil {
			t.Errorf("it would seal with %s", key)
		}
		if text, err := first.Seal([]byte("p4ssw0rd"), "login/1"); err == nil {
			t.Errorf("it has sealed, with %q", first.SealedBy(text))
		}
		if err := first.SealWith(own); err != nil {
			t.Error(err)
		}
		sealed(t, first, []byte("p4ssw0rd"), "login/1")
	}
}
