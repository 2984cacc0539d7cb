package ports

import "testing"

func woken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestSleepersWakeOncePerBurstUntilTheyStop(t *testing.T) {
	var s Sleepers
	s.WakeAll() // nobody waits
	one, stopOne := s.Wake()
	other, stopOther := s.Wake()
	defer stopOther()
	if woken(one) || woken(other) {
		t.Error("woken for nothing")
	}
	s.WakeAll()
	s.WakeAll() // nobody has looked yet: it must not block
	if !woken(one) || !woken(other) {
		t.Error("somebody sleeps on")
	}
	if woken(one) {
		t.Error("woken twice")
	}
	stopOne()
	s.WakeAll()
	if woken(one) || !woken(other) {
		t.Error("who has stopped is woken, or another is not")
	}
}
