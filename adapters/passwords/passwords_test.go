package passwords

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// The text is stored for years: neither its form nor the parameters change unnoticed.
func TestHash(t *testing.T) {
	got := check.Must(Hasher{}.Hash("password", [16]byte([]byte("0123456789abcdef"))))(t)
	const want = "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
	if !strings.HasPrefix(got, want) || len(got) != len(want)+43 {
		t.Errorf("%s", got)
	}
}

// What argon2's reference implementation made (echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1) matches.
func TestReference(t *testing.T) {
	const stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if !(Hasher{}).Matches(stored, "password") || (Hasher{}).Matches(stored, "Password") {
		t.Error("the reference's hash does not match its password alone")
	}
	for _, broken := range []string{
		"m=4294967295,t=2,p=1", "m=65536,t=0,p=1", "m=65536,t=2,p=0", "m=65536,t=4000000000,p=1", "m=,t=,p=",
	} {
		if (Hasher{}).Matches(strings.Replace(stored, "m=65536,t=2,p=1", broken, 1), "password") {
			t.Errorf("%s matches", broken)
		}
	}
}
