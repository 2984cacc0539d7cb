package credential_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/credential"
)

// RFC 7677, section 3: user "user", password "pencil". The verifier's keys follow from its salt and iteration count; the
// RFC's client proof and server signature were checked against them.
func TestVerifierOfTheRFC(t *testing.T) {
	salt := [16]byte{0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81}
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" +
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got := credential.Verifier("pencil", salt, credential.Iterations); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

func TestOnlyThePasswordMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var salt [16]byte
		copy(salt[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "salt"))
		password := rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "password")
		other := rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "other")
		v := credential.Verifier(password, salt, rapid.IntRange(1, 50).Draw(t, "iterations"))
		if !credential.Matches(v, password) {
			t.Fatalf("%q does not match its own verifier %s", password, v)
		}
		if other != password && credential.Matches(v, other) {
			t.Fatalf("%q matches the verifier of %q", other, password)
		}
	})
}

func TestWhatIsNoVerifierMatchesNothing(t *testing.T) {
	good := credential.Verifier("pencil", [16]byte{}, 1)
	for _, text := range []string{
		"", "md5aaaa", "pencil", good + "$", strings.Replace(good, "SCRAM", "SCREAM", 1), strings.Replace(good, "$1:", "$0:", 1),
		strings.Replace(good, "$1:", "$99999999999:", 1), strings.Replace(good, "=", "", 1), good[:len(good)-4],
		"SCRAM-SHA-256$1$:", "SCRAM-SHA-256$1:$:",
	} {
		if credential.Matches(text, "pencil") {
			t.Errorf("%q matched", text)
		}
	}
}

// What is no verifier matches no password.
func FuzzMatches(f *testing.F) {
	f.Add(credential.Verifier("pencil", [16]byte{1}, 2), "pencil")
	f.Add("SCRAM-SHA-256$1:AA==$AA==:AA==", "x")
	f.Add("SCRAM-SHA-256$-1:$:", "")
	f.Fuzz(func(t *testing.T, verifier, password string) {
		if len(verifier) > 200 || strings.Contains(verifier, "00000") {
			return // a large iteration count is legal and slow
		}
		if credential.Matches(verifier, password) && !strings.HasPrefix(verifier, "SCRAM-SHA-256$") {
			t.Fatalf("%q matched", verifier)
		}
	})
}
