package loop

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestTroubleThatRepeatsItselfIsToldOnce(t *testing.T) {
	var s Seldom
	core, lines := observer.New(zap.WarnLevel)
	for range 100 {
		s.Warn(zap.New(core), "down", "it is down")
	}
	s.Warn(zap.New(core), "full", "it is full")
	if got := lines.All(); len(got) != 2 || got[0].Message != "it is down" || got[1].Message != "it is full" {
		t.Errorf("%v", got)
	}
}
