package database

import (
	"testing"

	"github.com/pgherd/pgherd/core/querytimeout"
)

func TestApplied(t *testing.T) {
	before := NoSettings()
	before.SettingsGeneration, before.SettingsApplied, before.TimeoutEffective = 7, 5, querytimeout.Standard
	for generation, want := range map[int64]querytimeout.Profile{
		4: querytimeout.Standard, 5: querytimeout.Standard, 6: querytimeout.Short, 7: querytimeout.Short,
	} {
		s := before
		s.Applied(generation, querytimeout.Short)
		if s.TimeoutEffective != want || s.SettingsApplied != max(generation, 5) {
			t.Errorf("%d: %+v", generation, s)
		}
	}
}
