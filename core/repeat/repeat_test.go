package repeat

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// Five failures a second for three hours are a handful of lines, and the counts tell of every one.
func TestAnHourIsAFewLines(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	m := New(c.now)
	var lines []time.Duration
	var told int
	const all = 3 * 3600 * 5
	for i := range all {
		c.at = time.Unix(0, 0).Add(time.Duration(i) * 200 * time.Millisecond)
		if worth, held := m.Failed("x"); worth {
			lines = append(lines, c.at.Sub(time.Unix(0, 0)))
			told += 1 + held
		}
	}
	want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute, 31 * time.Minute, 63 * time.Minute,
		123 * time.Minute}
	if !slices.Equal(lines, want) {
		t.Errorf("lines at %v, want %v", lines, want)
	}
	since, times := m.Ended("x")
	if times != all || !since.Equal(time.Unix(0, 0)) || told != 123*60*5+1 {
		t.Errorf("%d since %v, of which lines told %d", times, since, told)
	}
	if worth, held := m.Failed("x"); !worth || held != 0 {
		t.Errorf("after it worked: %v, %d", worth, held)
	}
}

func TestKeysAreApart(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	m := New(c.now)
	for _, key := range []string{"x", "y"} {
		if worth, _ := m.Failed(key); !worth {
			t.Errorf("%s: its first failure was no line", key)
		}
	}
	if _, times := m.Ended("z"); times != 0 {
		t.Errorf("what never failed failed %d times", times)
	}
}

func TestAllOfOneThingEnd(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	m := New(c.now)
	for _, key := range []string{"x a", "x b", "xx a"} {
		m.Failed(key)
	}
	m.EndedAll("x ")
	for key, want := range map[string]bool{"x a": true, "x b": true, "xx a": false} {
		if worth, _ := m.Failed(key); worth != want {
			t.Errorf("%s: %v", key, worth)
		}
	}
}

// What has not failed for long is another matter when it fails again.
func TestASeriesEnds(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	m := New(c.now)
	m.Failed("x")
	c.at = c.at.Add(2*first + time.Second)
	if worth, held := m.Failed("x"); !worth || held != 0 {
		t.Errorf("%v, %d", worth, held)
	}
	if _, times := m.Ended("x"); times != 1 {
		t.Errorf("failed %d times", times)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	m := New(c.now)
	for i := range 3 * maxKeys {
		m.Failed(strconv.Itoa(i))
		if len(m.known) > maxKeys {
			t.Fatalf("%d keys are remembered", len(m.known))
		}
	}
	m.Failed("lasting")
	c.at = c.at.Add(time.Hour)
	m.Failed("lasting")
	for i := range maxKeys - 1 {
		m.Failed("n" + strconv.Itoa(i))
	}
	if m.known["lasting"] == nil {
		t.Error("what still fails was forgotten for what does not")
	}
}
