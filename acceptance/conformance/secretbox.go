package conformance

import (
	"bytes"
	"slices"
	"sync"
	"testing"

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
