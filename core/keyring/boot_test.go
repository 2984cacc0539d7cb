package keyring_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/keyring"
)

func TestWhichHostWasStartedAgain(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	boot := keyring.Boot{ID: "b2", At: at}
	for _, c := range []struct {
		boot  keyring.Boot
		known string
		seen  time.Duration // after the boot
		want  bool
	}{
		{boot, "api m :1 b2", time.Second, true},
		{boot, "api m :1 b1", -time.Second, true}, // the machine was started again
		{boot, "api m :1 b1", time.Second, false}, // a clone of it
		{boot, "api m :1", time.Second, true},
		{boot, "api m :12 b1", -time.Second, false},
		{boot, "api m2 :1 b1", -time.Second, false},
		{keyring.Boot{}, "api m :1", time.Second, true},
		{keyring.Boot{}, "api m :1 b1", -time.Second, false},
	} {
		if got := c.boot.Was(keyring.Host{Name: c.known, SeenAt: at.Add(c.seen)}, "api m :1"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
