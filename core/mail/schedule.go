package mail

import "time"

// Timeout bounds one attempt, from the look-up of the mail server's name to its answer to the whole mail. Mail servers may look
// at a mail for long before they take it, and one that is given up too early arrives again and again.
const Timeout = 90 * time.Second

// Retention is how long a mail is kept after it became final: it contains an address, and shows what became of it.
const Retention = 7 * 24 * time.Hour

// delays are the pauses after each failed attempt but the last: a mail server that is down over a weekend loses no mail.
var delays = [...]time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
	8 * time.Hour, 16 * time.Hour, 24 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is how many attempts of one mail may fail.
const MaxAttempts = len(delays) + 1

// MaxDoubtful is how many attempts may fail before a refusal without a cause is believed. The last of them is 23 minutes after
// the first, when a mail server that defers strangers commonly lets a mail in.
const MaxDoubtful = 5

// Delay is how long to wait after the given number of failed attempts, 1 or more; ok is false when none is left.
func Delay(failed int) (d time.Duration, ok bool) {
	if failed < 1 || failed > len(delays) {
		return 0, false
	}
	return delays[failed-1], true
}
