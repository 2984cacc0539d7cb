package serve

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

// Whoever comes while others are admitted is refused at once, and served as soon as one of them is through.
func TestAFullDeskRefuses(t *testing.T) {
	st := open(t, func(c *Config) { c.Limits.Admissions = 4 })
	st.gate.through = make(chan struct{})
	var waiting []*line
	for range 2 { // half of the bound, from one address
		l := st.dial(t)
		l.say(head("GET", thing, "patient"))
		waiting = append(waiting, l)
	}
	check.Eventually(t, "two are not at the desk", func() bool { return st.gate.count() == 2 })
	l := st.dial(t)
	l.say(head("GET", thing, anyKey))
	r := l.hear(cutBy)
	r.expect(t, 503, fault.ServerBusy)
	if after := r.Header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q", after)
	}
	close(st.gate.through)
	for _, w := range waiting {
		w.hear(cutBy).expect(t, 401, fault.Unauthorized)
	}
	l.say(head("GET", thing, anyKey))
	if r := l.hear(cutBy); r.StatusCode != 200 {
		t.Errorf("the desk is free, and the answer %d %s", r.StatusCode, r.text)
	}
}
