package token_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/token"
)

func TestParse(t *testing.T) {
	const text = "0123456789ABCDEFGHIJKLMNOPabcdefghijklmn"
	hash, ok := token.Parse(text)
	if !ok || hash != token.Of(text) || !hash.Equals(hash[:]) {
		t.Errorf("%x, %v", hash, ok)
	}
	for _, bad := range []string{"", text[1:], text + "0", " " + text[1:], text[1:] + "\n", text[1:] + "-", text[2:] + "é"} {
		if _, ok := token.Parse(bad); ok {
			t.Errorf("%q is taken for a token", bad)
		}
	}
	other := token.Of("another")
	if hash.Equals(other[:]) || hash.Equals(nil) {
		t.Error("another token is equal")
	}
}
