package pgbackrest

import (
	"encoding/hex"
	"strings"
	"testing"
)

// The text is what "openssl enc -aes-256-cbc -md sha1 -S 0102030405060708 -k secret" makes.
func TestEncryption(t *testing.T) {
	got := hex.EncodeToString(encryptSalted("secret", []byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte("text\n")))
	if got != "1c16a00d3b65cc40439602750feabab9" {
		t.Error(got)
	}
	one, other := string(encrypt("secret", make([]byte, 16))), string(encrypt("secret", make([]byte, 16)))
	if len(one) != 48 || !strings.HasPrefix(one, "Salted__") || one == other {
		t.Errorf("%q, %q", one, other)
	}
}
