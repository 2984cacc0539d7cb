package conformance

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/ports"
)

// Passwords is the suite of ports.Passwords.
func Passwords(t *testing.T, p ports.Passwords) {
	hash := func(password string, salt byte) string {
		t.Helper()
		text, err := p.Hash(password, [16]byte{salt})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const password = "correct horse battery staple"
	one, other := hash(password, 1), hash(password, 2)
	if one == other || one != hash(password, 1) {
		t.Error("a hash must follow from password and salt")
	}
	if strings.Contains(one, password) {
		t.Error("the hash shows the password")
	}
	for text, want := range map[string]bool{
		password: true, "": false, password + " ": false, strings.ToUpper(password): false, password[1:]: false,
	} {
		if p.Matches(one, text) != want || p.Matches(other, text) != want {
			t.Errorf("%q matches: %v, want %v", text, !want, want)
		}
	}
	for _, text := range []string{"", password, one[:len(one)-2], one + "$", "$" + one} {
		if p.Matches(text, password) {
			t.Errorf("the password matches the text %q, which is no hash of it", text)
		}
	}
	if long := strings.Repeat("é", 200); !p.Matches(hash(long, 3), long) || p.Matches(hash(long, 3), long[:398]) {
		t.Error("a long password is cut")
	}
}
