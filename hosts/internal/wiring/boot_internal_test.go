package wiring

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/keyring"
)

func TestBoot(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	want := keyring.Boot{ID: "3fa2c1d0", At: now.Add(-90500 * time.Millisecond)}
	if got := boot("3fa2c1d0-0000-4000-8000-000000000001\n", "90.50 12.00\n", now); got != want {
		t.Errorf("%+v", got)
	}
	for _, none := range [][2]string{{"", "90.50 1"}, {"3fa2c1d0-1", ""}, {"3fa2c1d0-1", "x 1"}} {
		if got := boot(none[0], none[1], now); got != (keyring.Boot{}) {
			t.Errorf("%q: %+v", none, got)
		}
	}
}
