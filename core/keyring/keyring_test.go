package keyring_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/keyring"
)

// Whose clock was a day ahead is not taken to live until then, and can be forgotten.
func TestWhoLives(t *testing.T) {
	now := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	for heard, want := range map[time.Duration]bool{
		0: true, -keyring.GoneAfter: true, keyring.GoneAfter: true,
		-keyring.GoneAfter - time.Second: false, keyring.GoneAfter + time.Second: false, 24 * time.Hour: false,
	} {
		h := keyring.Host{Name: "api1", SeenAt: now.Add(heard)}
		if got := h.Live(now); got != want {
			t.Errorf("heard of at %s from now: %v", heard, got)
		}
		err := keyring.AllHave([]keyring.Host{h}, "f", now)
		if offered := strings.Contains(err.Error(), "--forget NAME"); offered == want {
			t.Errorf("heard of at %s from now: %v", heard, err)
		}
	}
}
