package agent

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/agent/languages"
	"github.com/pgherd/pgherd/agent/ledger"
)

// TestALanguageThatComesIsComplainedAboutOnce plays looks at a server that an agent takes one after another.
func TestALanguageThatComesIsComplainedAboutOnce(t *testing.T) {
	tcl := languages.Found{Name: "pltcl", Extension: "pltcl"}
	perl := languages.Found{Name: "plperl", Database: "orders"}
	for name, c := range map[string]struct {
		looks   [][]languages.Found
		refused bool // at the first look
		errors  int
		warns   int
		shown   int
	}{
		"none":                    {[][]languages.Found{{}, {}}, false, 0, 0, 0},
		"one comes":               {[][]languages.Found{{}, {tcl}, {tcl}}, false, 1, 0, 1},
		"it goes and comes again": {[][]languages.Found{{}, {tcl}, {}, {tcl}}, false, 2, 0, 1},
		"there from the first":    {[][]languages.Found{{tcl}}, true, 0, 0, 1},
		"accepted":                {[][]languages.Found{{perl}, {perl}}, false, 0, 1, 1},
		"accepted, and another":   {[][]languages.Found{{perl}, {perl, tcl}}, false, 1, 1, 2},
	} {
		core, log := observer.New(zap.WarnLevel)
		w := newLanguageWatch(Config{Languages: languages.Policy{Accept: []string{"plperl"}}}, ledger.Server{}, zap.New(core))
		for i, found := range c.looks {
			if err := w.note(found); languages.Is(err) != (c.refused && i == 0) {
				t.Errorf("%s: look %d: %v", name, i, err)
			}
		}
		complaints, warnings := log.FilterLevelExact(zapcore.ErrorLevel).Len(), log.FilterLevelExact(zapcore.WarnLevel).Len()
		if complaints != c.errors || warnings != c.warns || len(w.report()) != c.shown {
			t.Errorf("%s: said %+v, shown %v", name, log.All(), w.report())
		}
	}
}
