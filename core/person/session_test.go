package person_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
)

var start = time.Date(2026, time.November, 27, 9, 0, 0, 0, time.UTC)

func begun(hasFactor bool) person.Session {
	at := person.Device{Client: "192.0.2.1", Agent: "a browser"}
	return person.Begin("s", "u", token.Of("first"), person.ByPassword, hasFactor, at, start)
}

// The ends that follow from time, each a moment before and at it.
func TestWhenSessionsEndByThemselves(t *testing.T) {
	used := func(after time.Duration) person.Session {
		s := begun(false)
		s.UsedAt = start.Add(after)
		return s
	}
	for name, c := range map[string]struct {
		session person.Session
		ends    time.Duration
	}{
		"a log-in that waits for a factor":  {begun(true), person.FactorTime},
		"a session that nobody uses":        {begun(false), person.Idle},
		"one that was used once":            {used(time.Hour), time.Hour + person.Idle},
		"one that is used until its oldest": {used(person.Life - time.Minute), person.Life},
	} {
		before, at := c.session.At(start.Add(c.ends-1)), c.session.At(start.Add(c.ends))
		if before.Status != c.session.Status || before.EndedAt != nil {
			t.Errorf("%s: %s before its end", name, before.Status)
		}
		if at.Status != person.Ended || at.EndedAt == nil || !at.EndedAt.Equal(start.Add(c.ends)) {
			t.Errorf("%s: %s at its end, ended at %v", name, at.Status, at.EndedAt)
		}
	}
}

func TestProofs(t *testing.T) {
	now := start.Add(time.Minute)
	waiting := begun(true)
	if waiting.IsOpen(now) {
		t.Error("a log-in without its factor is open")
	}
	proved, err := waiting.Proved(token.Of("second"), person.ByCode, now)
	if err != nil || !proved.IsOpen(now) || !token.Of("second").Equals(proved.TokenHash) || proved.ProvedAt != now ||
		waiting.ProvedBy != person.ByPassword || proved.ProvedBy != person.ByCode {
		t.Errorf("%+v, %v", proved, err)
	}
	later := now.Add(person.Recent)
	if err := proved.RequireRecent(later); err != nil {
		t.Errorf("ten minutes later: %v", err)
	}
	if err := proved.RequireRecent(later.Add(1)); !fault.Has(err, fault.LoginRequired) {
		t.Errorf("a moment later: %v", err)
	}
	again, err := proved.Proved(token.Of("third"), person.ByPasskey, later.Add(1))
	if err != nil || again.RequireRecent(later.Add(1)) != nil || again.CreatedAt != start ||
		again.ProvedBy != person.ByPasskey {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestTheLastWrongCodeEndsALogIn(t *testing.T) {
	for _, hasFactor := range []bool{true, false} {
		s := begun(hasFactor)
		for n := 1; n < person.MaxFactorTries; n++ {
			next, err := s.Missed(start)
			if err != nil || next.Status != s.Status {
				t.Fatalf("wrong code %d: %s, %v", n, next.Status, err)
			}
			s = next
		}
		if right, err := s.Proved(token.Of("second"), person.ByCode, start); err != nil || right.Tries != 0 {
			t.Errorf("the right code after them: %d tries, %v", right.Tries, err)
		}
		if s, err := s.Missed(start); err != nil || s.Status != person.Ended || s.EndedAt == nil {
			t.Errorf("the last one: %s, %v", s.Status, err)
		}
	}
}

// Whatever happens, in whatever order: an ended session stays ended, and one is open only after every proof that it needs.
func TestSessionsReachNothingAfterTheirEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hasFactor := rapid.Bool().Draw(t, "has factor")
		s, now := begun(hasFactor), start
		proved, ended := !hasFactor, false
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*person.Idle)).Draw(t, "pause")))
			var next person.Session
			var err error
			event := rapid.SampledFrom([]string{"prove", "miss", "close", "use"}).Draw(t, "event")
			over := ended || s.At(now).Status == person.Ended
			switch event {
			case "prove":
				next, err = s.Proved(token.Of("t"), person.ByCode, now)
				proved = proved || err == nil
			case "miss":
				next, err = s.Missed(now)
			case "close":
				next, err = s.Closed(now)
			case "use":
				if next = s; s.IsOpen(now) {
					next, _ = s.Used(now)
				}
			}
			if over && event != "use" && !fault.Has(err, fault.Unauthorized) {
				t.Fatalf("%s after the end: %v", event, err)
			}
			if err == nil {
				s = next
			}
			ended = ended || over || s.Status == person.Ended
			if open := s.IsOpen(now); open && (ended || !proved) {
				t.Fatalf("open after %s; ended %t, proved %t", event, ended, proved)
			}
		}
	})
}

// A passkey is both factors; what a session was opened and last proved by decides whether an operator works in it.
func TestWhatProofsAreWorth(t *testing.T) {
	asks := map[person.Means]bool{person.ByPassword: true, person.BySignOn: true}
	for _, hasFactor := range []bool{false, true} {
		for _, by := range person.AllMeans {
			s := person.Begin("s", "u", token.Of("t"), by, hasFactor, person.Device{}, start)
			if waits := s.Status == person.AwaitsFactor; waits != (hasFactor && asks[by]) || s.ProvedBy != by {
				t.Errorf("after a %s, with a factor %t: %s by %s", by, hasFactor, s.Status, s.ProvedBy)
			}
		}
	}
	for _, c := range []struct {
		by                person.Means
		named, hasPasskey bool
		refused           fault.Code // empty: they operate
	}{
		{person.ByPasskey, true, true, ""}, {person.ByPasskey, true, false, fault.Forbidden},
		{person.ByPasskey, false, true, fault.RouteNotFound}, {person.ByPassword, false, false, fault.RouteNotFound},
		{person.ByPassword, true, false, fault.Forbidden}, {person.ByPassword, true, true, fault.LoginRequired},
		{person.ByCode, true, true, fault.LoginRequired}, {person.BySignOn, true, true, fault.LoginRequired},
		{"", true, true, fault.LoginRequired},
	} {
		err := (person.Session{ProvedBy: c.by}).Operates(c.named, c.hasPasskey)
		if operates := c.refused == ""; operates != (err == nil) || !operates && !fault.Has(err, c.refused) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWhoChangesPasskeys(t *testing.T) {
	for _, by := range append(person.AllMeans, "") {
		for _, named := range []bool{false, true} {
			for _, has := range []bool{false, true} {
				refused := named && has && by != person.ByPasskey
				if err := (person.Session{ProvedBy: by}).ChangesPasskeys(named, has); refused != fault.Has(err, fault.LoginRequired) {
					t.Errorf("by %q, named %v, with a passkey %v: %v", by, named, has, err)
				}
			}
		}
	}
}

func TestWhatOneMoreSessionEnds(t *testing.T) {
	list := func(waiting ...int) (all []person.Session) {
		for n := range person.MaxSessions {
			s := begun(slices.Contains(waiting, n))
			s.Tries = n
			all = append(all, s)
		}
		return all
	}
	last := person.MaxSessions - 1
	for _, c := range []struct {
		all  []person.Session
		ends []int
	}{
		{list()[1:], nil}, {list(), []int{last}}, {list(0), []int{0}}, {list(0, 5), []int{5}},
		{append(list(), list(3)...)[last:], []int{last, 3}},
	} {
		var ends []int
		for _, s := range person.Displaced(c.all) {
			ends = append(ends, s.Tries)
		}
		if !slices.Equal(ends, c.ends) {
			t.Errorf("of %d sessions %v end, want %v", len(c.all), ends, c.ends)
		}
	}
}

func TestUseIsStoredOnceAMinute(t *testing.T) {
	s := begun(false)
	if same, changed := s.Used(start.Add(person.Touch - 1)); changed || !same.UsedAt.Equal(start) {
		t.Error("stored within the minute")
	}
	if used, changed := s.Used(start.Add(person.Touch)); !changed || !used.UsedAt.Equal(start.Add(person.Touch)) {
		t.Error("not stored after a minute")
	}
}

// Whatever a browser says of itself, a short line of text is kept of it.
func FuzzAgent(f *testing.F) {
	for _, agent := range []string{"", "Mozilla/5.0", "a\x00b\r\n\x7f", "\xff\xfe", strings.Repeat("ü", 500)} {
		f.Add(agent)
	}
	f.Fuzz(func(t *testing.T, agent string) {
		s := person.Begin("s", "u", token.Of("t"), person.ByPassword, false, person.Device{Agent: agent}, start)
		if !utf8.ValidString(s.Agent) || utf8.RuneCountInString(s.Agent) > 200 || strings.ContainsAny(s.Agent, "\x00\r\n\x7f") {
			t.Errorf("%q is kept as %q", agent, s.Agent)
		}
	})
}
