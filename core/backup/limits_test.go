package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
)

func TestAVerificationMayTakeAMultipleOfItsDump(t *testing.T) {
	limits := backup.Limits{}.OrDefault()
	for dump, want := range map[time.Duration]time.Duration{
		0: 5 * time.Minute, time.Second: 5 * time.Minute, 30 * time.Second: 5 * time.Minute, time.Minute: 10 * time.Minute,
		6 * time.Hour: 60 * time.Hour,
		// What no dump can have taken: the clock was set meanwhile.
		-time.Hour: 60 * time.Hour, 7 * time.Hour: 60 * time.Hour,
	} {
		if got := limits.Verify(dump); got != want {
			t.Errorf("after a dump of %s: %s, want %s", dump, got, want)
		}
	}
	own := backup.Limits{Dump: time.Hour, VerifyFactor: 2, VerifyLeast: time.Second}.OrDefault()
	if got := own.Verify(time.Minute); got != 2*time.Minute {
		t.Errorf("with a factor of 2: %s", got)
	}
}

func TestLimitsThatCannotBeAreRefused(t *testing.T) {
	for flag, l := range map[string]backup.Limits{
		"":                {},
		"--dump-time":     {Dump: -1},
		"--verify-factor": {VerifyFactor: 1001},
		"--verify-least":  {VerifyLeast: 1 << 62},
	} {
		err := l.Check()
		if (err == nil) != (flag == "") || err != nil && !strings.Contains(err.Error(), flag) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
