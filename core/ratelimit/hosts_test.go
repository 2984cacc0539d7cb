package ratelimit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A script is what befalls up to four hosts with one bucket: its first byte says how far their clocks are apart, and each two
// bytes after that are one step: who and what, and how much.
type script []byte

const (
	stepRequests = iota // as many as "how much", of which so many wait for each other
	stepGivesBack
	stepCrashes // and starts again
	stepPasses  // time
	stepClock   // is set anew
	stepSwept   // by the batch host
	steps
)

// With these, a lease is up to 30 requests, and 20 more drain while it is held.
var scripted = Limit{240, 24 * time.Second}

// play returns the true times at which requests were let in, and how far the clocks were apart from the true time at most.
func (s script) play() (admitted []time.Time, apart time.Duration) {
	if len(s) == 0 {
		return nil, 0
	}
	apart = time.Duration(s[0]%2) * time.Duration(s[0]) * 100 * time.Millisecond // within Skew, in both directions
	var hosts [4]host
	now, b := start, &Bucket{}
	for s = s[1:]; len(s) >= 2; s = s[2:] {
		h, much := &hosts[s[0]%4], int(s[1])
		switch s[0] / 4 % steps {
		case stepRequests:
			for range s[1] {
				if h.request(scripted, b, now, scripted.Count).Allowed {
					admitted = append(admitted, now)
				}
			}
		case stepGivesBack:
			h.giveBack(scripted, b, now)
		case stepCrashes:
			h.lease = Lease{}
		case stepPasses:
			now = now.Add(time.Duration(much*much) * time.Millisecond / 4)
		case stepClock:
			h.ahead = apart / 255 * time.Duration(2*much-255)
		case stepSwept:
			if b.Forgettable(now.Add(h.ahead)) {
				*b = Bucket{}
			}
		}
	}
	return admitted, apart
}

// check fails where a window of time held more than the burst and what drains in it: n requests take n intervals.
func (s script) check(t interface{ Fatalf(string, ...any) }) {
	admitted, apart := s.play()
	var first time.Duration // the worst beginning of a window so far, less the intervals of the requests before it
	for n, at := range admitted {
		since := at.Sub(start) - time.Duration(n)*scripted.Interval()
		if first = max(first, since); n == 0 {
			first = since
		}
		if over := first - since + scripted.Interval() - scripted.Period - 2*apart; over > 0 {
			t.Fatalf("request %d comes %s too early, with clocks that are %s apart", n+1, over, apart)
		}
	}
}

var aStep = rapid.Custom(func(t *rapid.T) [2]byte {
	kind := rapid.SampledFrom([]byte{
		stepRequests, stepRequests, stepRequests, stepRequests, stepPasses, stepPasses, stepGivesBack, stepCrashes, stepClock,
		stepSwept,
	}).Draw(t, "step")
	host := rapid.SampledFrom([]byte{0, 0, 0, 1, 2, 3}).Draw(t, "host")
	return [2]byte{4*kind + host, rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{1, 10, 80, 255})).Draw(t, "much")}
})

// However several hosts lease, give back and crash, in no window of time do they let in more than the limit allows.
func TestHostsTogetherKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := script{rapid.SampledFrom([]byte{0, 0, 11, 255}).Draw(t, "apart")}
		for _, step := range rapid.SliceOfN(aStep, 10, 40).Draw(t, "steps") {
			s = append(s, step[:]...)
		}
		s.check(t)
	})
}

// Whatever hosts take, give back and crash with, by clocks that differ, nobody gets more than the limit.
func FuzzHosts(f *testing.F) {
	const first, second, third = 0, 1, 2
	const back, crash, pass = 4 * stepGivesBack, 4 * stepCrashes, 4 * stepPasses
	const clock, swept = 4 * stepClock, 4 * stepSwept
	f.Add([]byte{0, first, 255, second, 255, first, 255, second, 255})
	f.Add([]byte{0, first, 1, pass, 85, first, 255, second, 255}) // held while time passes
	f.Add([]byte{0, first, 1, crash + first, 0, first, 255, pass, 255, first, 255})
	f.Add([]byte{0, first, 1, second, 1, back + first, 0, third, 255, second, 255})
	f.Add([]byte{255, clock + first, 255, clock + second, 0, first, 255, second, 255, first, 255, second, 255}) // clocks apart
	f.Add([]byte{
		255, clock + first, 255, second, 255, swept + first, 0, third, 255, swept + first, 0, third, 255,
		swept + first, 0, crash + second, 0, second, 255, swept + first, 0, crash + third, 0, third, 255,
	}) // a sweep by a fast clock
	f.Fuzz(func(t *testing.T, s []byte) {
		if len(s) <= 200 {
			script(s).check(t)
		}
	})
}
