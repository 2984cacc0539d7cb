package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/versions"
)

func bouncer(number string) versions.Found {
	found, err := versions.Parse("PgBouncer " + number)
	if err != nil {
		panic(err)
	}
	return found
}

func watching(policy versions.Policy) (*programs, *observer.ObservedLogs) {
	core, log := observer.New(zap.InfoLevel)
	return newPrograms(Config{Versions: policy}, ledger.Server{}, nil, zap.New(core)), log
}

func TestAProgramThatIsReplacedIsComplainedAboutOnce(t *testing.T) {
	p, log := watching(versions.Policy{})
	for _, number := range []string{"1.27.0", "1.24.1", "1.24.1"} {
		check.NoError(t, p.note(bouncer(number)), number)
	}
	said := log.FilterMessage("a program was replaced by a version with known holes").All()
	if len(said) != 1 || said[0].Level != zap.ErrorLevel || said[0].ContextMap()["version"] != "PgBouncer 1.24.1" {
		t.Errorf("said %+v", log.All())
	}
	if shown := p.report()[1]; !shown.BelowFloor || shown.Accepted || shown.Version != "PgBouncer 1.24.1" || len(shown.Holes) == 0 {
		t.Errorf("shown %+v", shown)
	}
}

func TestAProgramThatWasNeverGoodIsRefused(t *testing.T) {
	p, _ := watching(versions.Policy{Accept: []string{"PgBouncer 1.24.0"}})
	var refusal *versions.Refusal
	if err := p.note(bouncer("1.24.1")); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

func TestAnAcceptedVersionIsNamedWithItsHoles(t *testing.T) {
	p, log := watching(versions.Policy{Accept: []string{"PgBouncer 1.24.1"}})
	check.NoError(t, p.note(bouncer("1.24.1")))
	said := log.FilterMessage("a version with known holes is let pass").All()
	if len(said) != 1 || !strings.Contains(said[0].ContextMap()["holes"].(string), "CVE-2026-107349") {
		t.Errorf("said %+v", log.All())
	}
	if shown := p.report()[1]; !shown.BelowFloor || !shown.Accepted {
		t.Errorf("shown %+v", shown)
	}
}

// pg_dump says its version as the user that it dumps as, and not as root.
func TestPgDumpIsAskedAsItDumps(t *testing.T) {
	dir, asker := t.TempDir(), os.Geteuid()
	check.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	script := filepath.Join(dir, "pg_dump")
	check.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"pg_dump (PostgreSQL) 99.1 by $(id -u)\"\n"), 0o755))
	if asker == 0 {
		asker = 65534
	}
	c := Config{PgDump: script, PoolerOwner: &pooler.Owner{UID: 65534, GID: 65534}}
	found, err := newPrograms(c, ledger.Server{}, nil, zap.NewNop()).askDump(t.Context())
	if want := fmt.Sprint("pg_dump (PostgreSQL) 99.1 by ", asker); found.Text != want {
		t.Errorf("%q, want %q (%v)", found.Text, want, err)
	}
}

func TestProgramsThatHaveNotAnsweredAreListed(t *testing.T) {
	p, _ := watching(versions.Policy{})
	list := p.report()
	if len(list) != 3 || list[0].Name != "PostgreSQL" || list[0].Version != "" || list[0].Holes == nil || len(p.missing()) != 3 {
		t.Errorf("%+v", list)
	}
}
