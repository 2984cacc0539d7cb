package web

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/id"
)

func TestStreamsOfAll(t *testing.T) {
	s := newStreams()
	var leave func()
	for n := range maxStreamsOfAll {
		var ok bool
		if _, leave, ok = s.enter(id.UserID(fmt.Sprint(n / maxStreamsOfPerson))); !ok {
			t.Fatalf("the stream %d is one too many", n)
		}
	}
	if _, _, ok := s.enter("another"); ok || s.count() != maxStreamsOfAll {
		t.Errorf("one more than a host has entered: %d", s.count())
	}
	leave()
	if _, _, ok := s.enter("another"); !ok {
		t.Error("there is room for one")
	}
}

// Whoever asks while the host stops is not refused, since a browser takes that for ever: it is sent on.
func TestStreamsOfAHostThatStops(t *testing.T) {
	s := newStreams()
	s.endAll()
	s.endAll()
	over, leave, ok := s.enter("somebody")
	if !ok {
		t.Fatal("refused")
	}
	<-over
	leave()
	if s.count() != 0 || len(s.ofPerson) != 0 {
		t.Errorf("%d streams are left, of %d people", s.count(), len(s.ofPerson))
	}
}
