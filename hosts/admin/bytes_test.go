package admin

import "testing"

func TestByteCounts(t *testing.T) {
	for text, want := range map[string]byteCount{
		"0": 0, "-1": -1, "1000": 1000, "7B": 7, "2KiB": 2048, "3MiB": 3 << 20, "20GiB": 20 << 30, "8388607TiB": 8388607 << 40,
	} {
		var b byteCount
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
	}
	for _, text := range []string{
		"", "GiB", "1.5GiB", "20G", "20GB", "20 GiB", "20gib", "20iB", "0x10", "1_000", "8388608TiB", "99999999999999999999",
	} {
		b := byteCount(5)
		if err := b.Set(text); err == nil || b != 5 {
			t.Errorf("%q is %d, %v", text, b, err)
		}
	}
}
