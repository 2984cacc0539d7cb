package backup

import (
	"cmp"
	"errors"
	"time"
)

// Limits bound how long a dump and its verification may take: both run what customers have written. Zero means the default.
type Limits struct {
	Dump         time.Duration // of a dump; default 6 h
	VerifyFactor int           // how many times the dump's time a verification may take; default 10
	VerifyLeast  time.Duration // what a verification may take in any case; default 5 min
}

// DefaultLimits are what a server has whose operator sets none.
var DefaultLimits = Limits{Dump: 6 * time.Hour, VerifyFactor: 10, VerifyLeast: 5 * time.Minute}

// OrDefault fills in the defaults.
func (l Limits) OrDefault() Limits {
	return Limits{
		Dump:         cmp.Or(l.Dump, DefaultLimits.Dump),
		VerifyFactor: cmp.Or(l.VerifyFactor, DefaultLimits.VerifyFactor),
		VerifyLeast:  cmp.Or(l.VerifyLeast, DefaultLimits.VerifyLeast),
	}
}

// The highest that may be set. Their product is a time, too.
const (
	mostTime   = 30 * 24 * time.Hour
	mostFactor = 1000
)

// Check refuses what is negative or absurd.
func (l Limits) Check() error {
	switch {
	case l.Dump < 0 || l.Dump > mostTime:
		return errors.New("the dump time (--dump-time) must be from 0 to 720h; 0 means the default")
	case l.VerifyFactor < 0 || l.VerifyFactor > mostFactor:
		return errors.New("the verification's factor (--verify-factor) must be from 0 to 1000; 0 means the default")
	case l.VerifyLeast < 0 || l.VerifyLeast > mostTime:
		return errors.New("the least time of a verification (--verify-least) must be from 0 to 720h; 0 means the default")
	}
	return nil
}

// Verify is how long the verification of a dump may take. A dump's time that cannot be, as after the clock was set, says nothing:
// then it is taken to be the longest possible.
func (l Limits) Verify(dump time.Duration) time.Duration {
	if dump < 0 || dump > l.Dump {
		dump = l.Dump
	}
	return max(time.Duration(l.VerifyFactor)*dump, l.VerifyLeast)
}
