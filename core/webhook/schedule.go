package webhook

import (
	"encoding/binary"
	"time"
)

// The delivery schedule (spec, "Events").
const (
	MaxAttempts  = 5                // of one delivery, the first included
	DisableAfter = 10               // failed attempts in a row after which an exhausted delivery disables the endpoint
	Timeout      = 10 * time.Second // of one attempt, from the look-up of the name to the answer's header
	maxJitter    = 0.2              // of a delay
)

var delays = [MaxAttempts - 1]time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}

// Delay is how long to wait after the given number of failed attempts, 1 or more; ok is false when none is left. jitter, from
// 0 to 1, adds up to a fifth of the delay.
func Delay(failed int, jitter float64) (d time.Duration, ok bool) {
	if failed < 1 || failed > len(delays) {
		return 0, false
	}
	base := delays[failed-1]
	return base + time.Duration(float64(base)*maxJitter*min(max(jitter, 0), 1)), true
}

// Jitter makes a number from 0 to 1 out of random bytes.
func Jitter(random [16]byte) float64 {
	return float64(binary.BigEndian.Uint64(random[8:])>>11) / (1 << 53)
}
