package floors

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
)

func bouncer(number string) Version {
	found, err := Parse("PgBouncer " + number)
	if err != nil {
		panic(err)
	}
	return found
}

func watching(policy Policy) (*Programs, *observer.ObservedLogs) {
	core, log := observer.New(zap.InfoLevel)
	never := func(context.Context) (Version, error) { return Version{}, errors.New("not asked") }
	asks := map[Program]Ask{PostgreSQL: never, PgBouncer: never, PgDump: never}
	return NewPrograms(policy, asks, nil, zap.New(core)), log
}

func TestAProgramThatIsReplacedIsComplainedAboutOnce(t *testing.T) {
	p, log := watching(Policy{})
	for _, number := range []string{"1.27.0", "1.24.1", "1.24.1"} {
		check.NoError(t, p.note(bouncer(number)), number)
	}
	said := log.FilterMessage("a program was replaced by a version with known holes").All()
	if len(said) != 1 || said[0].Level != zap.ErrorLevel || said[0].ContextMap()["version"] != "PgBouncer 1.24.1" {
		t.Errorf("said %+v", log.All())
	}
	if shown := p.Report()[1]; !shown.BelowFloor || shown.Accepted || shown.Version != "PgBouncer 1.24.1" || len(shown.Holes) == 0 {
		t.Errorf("shown %+v", shown)
	}
}

func TestAProgramThatWasNeverGoodIsRefused(t *testing.T) {
	p, _ := watching(Policy{Accept: []string{"PgBouncer 1.24.0"}})
	var refusal *Refusal
	if err := p.note(bouncer("1.24.1")); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

func TestAnAcceptedVersionIsNamedWithItsHoles(t *testing.T) {
	p, log := watching(Policy{Accept: []string{"PgBouncer 1.24.1"}})
	check.NoError(t, p.note(bouncer("1.24.1")))
	said := log.FilterMessage("a version with known holes is let pass").All()
	if len(said) != 1 || !strings.Contains(said[0].ContextMap()["holes"].(string), "CVE-2026-107349") {
		t.Errorf("said %+v", log.All())
	}
	if shown := p.Report()[1]; !shown.BelowFloor || !shown.Accepted {
		t.Errorf("shown %+v", shown)
	}
}

// pgBackRest is asked for by no one here, as by an agent without an archive.
func TestProgramsThatHaveNotAnsweredAreListed(t *testing.T) {
	p, _ := watching(Policy{})
	list := p.Report()
	if len(list) != 3 || list[0].Name != "PostgreSQL" || list[0].Version != "" || list[0].Holes == nil || len(p.missing()) != 3 {
		t.Errorf("%+v", list)
	}
}
