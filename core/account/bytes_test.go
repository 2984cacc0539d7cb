package account_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
)

func TestByteCounts(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-1": -1, "1000": 1000, "7B": 7, "2KiB": 2048, "3MiB": 3 << 20, "20GiB": 20 << 30, "8388607TiB": 8388607 << 40,
	} {
		if got, err := account.ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "GiB", "1.5GiB", "20G", "20GB", "20 GiB", "20gib", "20iB", "0x10", "1_000", "8388608TiB", "99999999999999999999",
	} {
		if got, err := account.ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
