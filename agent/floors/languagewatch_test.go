package floors

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestALanguageThatComesIsComplainedAboutOnce plays looks at a server that an agent takes one after another.
func TestALanguageThatComesIsComplainedAboutOnce(t *testing.T) {
	tcl := Language{Name: "pltcl", Extension: "pltcl"}
	perl := Language{Name: "plperl", Database: "orders"}
	for name, c := range map[string]struct {
		looks   [][]Language
		refused bool // at the first look
		errors  int
		warns   int
		shown   int
	}{
		"none":                    {[][]Language{{}, {}}, false, 0, 0, 0},
		"one comes":               {[][]Language{{}, {tcl}, {tcl}}, false, 1, 0, 1},
		"it goes and comes again": {[][]Language{{}, {tcl}, {}, {tcl}}, false, 2, 0, 1},
		"there from the first":    {[][]Language{{tcl}}, true, 0, 0, 1},
		"accepted":                {[][]Language{{perl}, {perl}}, false, 0, 1, 1},
		"accepted, and another":   {[][]Language{{perl}, {perl, tcl}}, false, 1, 1, 2},
	} {
		core, log := observer.New(zap.WarnLevel)
		w := NewLanguages(Policy{Accept: []string{"plperl"}}, nil, nil, zap.New(core))
		for i, found := range c.looks {
			if err := w.note(found); Is(err) != (c.refused && i == 0) {
				t.Errorf("%s: look %d: %v", name, i, err)
			}
		}
		complaints, warnings := log.FilterLevelExact(zapcore.ErrorLevel).Len(), log.FilterLevelExact(zapcore.WarnLevel).Len()
		if complaints != c.errors || warnings != c.warns || len(w.Report()) != c.shown {
			t.Errorf("%s: said %+v, shown %v", name, log.All(), w.Report())
		}
	}
}
