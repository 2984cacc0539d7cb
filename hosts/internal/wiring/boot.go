package wiring

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/keyring"
)

// thisBoot is the run of this machine, as Linux tells it; the zero value elsewhere.
func thisBoot() keyring.Boot {
	random, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return keyring.Boot{}
	}
	since, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return keyring.Boot{}
	}
	return boot(string(random), string(since), time.Now())
}

// boot reads what the kernel says: a UUID, of which a part is enough, and the seconds since the boot.
func boot(random, since string, now time.Time) keyring.Boot {
	short, _, _ := strings.Cut(strings.TrimSpace(random), "-")
	seconds, _, _ := strings.Cut(since, " ")
	up, err := strconv.ParseFloat(seconds, 64)
	if err != nil || short == "" {
		return keyring.Boot{}
	}
	return keyring.Boot{ID: short, At: now.Add(-time.Duration(up * float64(time.Second)))}
}
