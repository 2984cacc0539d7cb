package server

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func randomBytes(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSecrets(t *testing.T) {
	for name, c := range map[string]struct{ secret, wrong string }{
		"openssl rand -hex 32":    {hex.EncodeToString(randomBytes(t, 32)), ""},
		"openssl rand -base64 24": {base64.StdEncoding.EncodeToString(randomBytes(t, 24)), ""},
		"base32":                  {rand.Text(), ""},
		"32 hex digits":           {"0f3c5e79a1b2d4e68f7091a3b5c7d9e2", ""},
		"31 hex digits":           {"0f3c5e79a1b2d4e68f7091a3b5c7d9e", "too short"},
		"16 characters":           {"kX3vPq9ZtR5mWc7L", "too short"},
		"21 of base64":            {"kX3vPq9ZtR5mWc7LbN2sD", "too short"},
		"38 digits":               {"31415926535897932384626433832795028841", "too short"},
		"none":                    {"", "too short"},
		"one character":           {strings.Repeat("a", 64), "variety"},
		"a word again and again":  {strings.Repeat("correcthorse", 4), "variety"},
		"a space":                 {"kX3vPq9ZtR5mWc7L kX3vPq9ZtR5mWc8M", "printable"},
		"beyond ASCII":            {"kX3vPq9ZtR5mWc7LbN2sDäkX3vPq9ZtR5", "printable"},
	} {
		err := CheckSecret(c.secret)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
		if err != nil && (!strings.Contains(err.Error(), "openssl rand") || c.secret != "" && strings.Contains(err.Error(), c.secret)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file of shared secrets has one or two good ones, or nothing is taken of it.
func FuzzParseSecrets(f *testing.F) {
	const one, two = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2", "kX3vPq9ZtR5mWc7LbN2sDv"
	for _, text := range []string{
		"", one, one + "\n", one + "\r\n\r\n" + two + "\r\n", one + "\n" + two + "\n" + one, one + "\nshort", " " + one,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSecrets(text)
		if err != nil {
			if list != nil {
				t.Fatal("an error with secrets")
			}
			return
		}
		if len(list) == 0 || len(list) > 2 || slices.ContainsFunc(list, func(s string) bool { return CheckSecret(s) != nil }) {
			t.Fatalf("%q", list)
		}
		if again, err := ParseSecrets(strings.Join(list, "\n")); err != nil || !slices.Equal(again, list) {
			t.Fatalf("%q became %q, %v", list, again, err)
		}
	})
}

func TestTwoSecrets(t *testing.T) {
	const one, two = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2", "kX3vPq9ZtR5mWc7LbN2sDv"
	list, err := ParseSecrets(one + "\r\n\n" + two + "\n")
	if err != nil || !slices.Equal(list, []string{one, two}) {
		t.Errorf("%q, %v", list, err)
	}
	for name, text := range map[string]string{"none": "\n", "three": one + "\n" + two + "\n" + one, "a weak one": one + "\nformer"} {
		if list, err := ParseSecrets(text); err == nil {
			t.Errorf("%s: %q", name, list)
		}
	}
}
