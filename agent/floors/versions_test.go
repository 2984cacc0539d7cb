package floors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestWhatPasses(t *testing.T) {
	for text, passes := range map[string]bool{
		"PostgreSQL 16.16":                           true,
		"PostgreSQL 16.15":                           false,
		"PostgreSQL 16.9":                            false,
		"PostgreSQL 16.14 (Debian 16.14-1.pgdg13+1)": false,
		"PostgreSQL 17.12":                           true,
		"PostgreSQL 17.11":                           false,
		"PostgreSQL 18.7":                            true,
		"PostgreSQL 18.6":                            false,
		"PgBouncer 1.26.1":                           true,
		"PgBouncer 1.26.0":                           false,
		"PgBouncer 1.24.1":                           false,
		"PgBouncer 1.3.9":                            false,
		"PgBouncer 1.27.0":                           true,
		"PgBouncer 2.0.0":                            true,
		"pgBackRest 2.45":                            false,
		"pgBackRest 2.55.1":                          false,
		"pgBackRest 2.59.1":                          false,
		"pgBackRest 2.59.2":                          true,
		"pgBackRest 2.60.0":                          true,
		"pg_dump (PostgreSQL) 15.99":                 false,
		"pg_dump (PostgreSQL) 16.14":                 false,
		"pg_dump (PostgreSQL) 16.15":                 true,
		"pg_dump (PostgreSQL) 17.10 (Debian 17.10-0+deb13u1)":  false,
		"pg_dump (PostgreSQL) 17.12 (Debian 17.12-0+deb13u1)":  true,
		"pg_dump (PostgreSQL) 18.5 (Homebrew)":                 false,
		"pg_dump (PostgreSQL) 18.6":                            true,
		"pg_dump (PostgreSQL) 19.0":                            true,
		"pg_dump (PostgreSQL) 9.6.24 (some package 17.12-0+1)": false,
	} {
		found := check.Must(Parse(text))(t)
		v := Policy{}.Judge(found)
		if v.Passes != passes || v.Below == passes {
			t.Errorf("%s: passes %t, below %t; want passes %t", text, v.Passes, v.Below, passes)
		}
		if err := v.Admit(); (err == nil) != passes {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A server of another major version is refused whatever the operator accepts: the agent has not been tried on it.
func TestOtherMajorVersionsAreRefused(t *testing.T) {
	for _, text := range []string{"PostgreSQL 15.20", "PostgreSQL 19.1"} {
		p := Policy{Accept: []string{text}, Development: true}
		v := p.Judge(check.Must(Parse(text))(t))
		err := v.Admit()
		if v.Passes || !v.Unsupported || !Is(err) || !strings.Contains(err.Error(), text+" is not supported") ||
			!strings.Contains(err.Error(), "16 to 18") {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

func TestOnlyTheExactVersionIsAccepted(t *testing.T) {
	const checked = "pg_dump (PostgreSQL) 17.5 (Debian 17.5-1)"
	p := Policy{Accept: []string{checked, "PgBouncer 1.24.1", "pgBackRest 2.55.1"}}
	check.NoError(t, p.CheckVersions())
	for text, accepted := range map[string]bool{
		checked: true, "pg_dump (PostgreSQL) 17.5": false, "pg_dump (PostgreSQL) 17.5 (Debian 17.5-2)": false,
		"PgBouncer 1.24.1": true, "PgBouncer 1.24.10": false, "PgBouncer 1.24.0": false,
		"pgBackRest 2.55.1": true, "pgBackRest 2.55": false, "pgBackRest 2.45": false,
	} {
		found := check.Must(Parse(text))(t)
		v := p.Judge(found)
		if v.Accepted != accepted || v.Passes != accepted || !v.Below {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

func TestDevelopmentPassesAndStillSaysSo(t *testing.T) {
	v := Policy{Development: true}.Judge(Version{PgBouncer, "PgBouncer 1.24.1", Number{1, 24, 1}})
	if !v.Passes || !v.Below || v.Accepted || len(v.Holes) == 0 || v.Admit() != nil {
		t.Errorf("%+v", v)
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	for text, parts := range map[string][]string{
		"PostgreSQL 16.14": {"PostgreSQL 16.14 is older than 16.16", "CVE-2026-6460", "--accept-versions 'PostgreSQL 16.14'"},
		"pgBackRest 2.45":  {"Install 2.59.2 or later", "pgBackRest #2829 lets", "--accept-versions 'pgBackRest 2.45'"},
	} {
		err := Policy{}.Judge(check.Must(Parse(text))(t)).Admit()
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is missing in %q", part, err)
			}
		}
	}
}

func TestWhatIsNoVersionIsNamed(t *testing.T) {
	for _, text := range []string{
		"", "1.24.1", "PgBouncer", "pgbouncer 1.24.1", "PgBouncer 1.24.1 ", "PgBouncer x.y", "MySQL 8.0", "PostgreSQL 17beta1", "*",
		"PgBouncer *",
	} {
		if err := (Policy{Accept: []string{text}}).CheckVersions(); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFloorsAreData holds that each program has a floor, each floor its reasons, and each series one floor, in ascending order.
func TestFloorsAreData(t *testing.T) {
	for _, p := range All {
		of := floors[p]
		if len(of) == 0 {
			t.Errorf("%s has no floor", p)
		}
		if !slices.IsSortedFunc(of, func(a, b Floor) int { return a.Least[0] - b.Least[0] }) {
			t.Errorf("the floors of %s are not in ascending order", p)
		}
		for _, f := range of {
			for _, h := range f.Holes {
				if len(h.IDs) == 0 || h.Lets == "" {
					t.Errorf("%s %s: hole %+v", p, f.Least, h)
				}
				for _, name := range h.IDs {
					if !regexp.MustCompile(`^(CVE-\d{4}-\d{4,}|pgBackRest #\d+)$`).MatchString(name) {
						t.Errorf("%s %s: %q is no identifier", p, f.Least, name)
					}
				}
			}
			if len(f.Holes) == 0 {
				t.Errorf("%s %s closes nothing", p, f.Least)
			}
		}
	}
}

func TestWhatAServerSays(t *testing.T) {
	got := Server("16.14 (Debian 16.14-1.pgdg13+1)", 160014)
	want, err := Parse("PostgreSQL 16.14 (Debian 16.14-1.pgdg13+1)")
	if err != nil || got != want {
		t.Errorf("%+v, want %+v (%v)", got, want, err)
	}
}

func TestAProgramIsAskedForItsVersion(t *testing.T) {
	script := filepath.Join(t.TempDir(), "program")
	for prints, want := range map[string]string{
		"pg_dump (PostgreSQL) 17.12 (Debian 17.12-0+deb13u1)": "pg_dump (PostgreSQL) 17.12 (Debian 17.12-0+deb13u1)",
		"postgres (PostgreSQL) 16.14 (Debian 16.14-1)":        "PostgreSQL 16.14 (Debian 16.14-1)",
		"PgBouncer 1.24.1": "PgBouncer 1.24.1",
	} {
		text := "#!/bin/sh\n[ \"$1\" = --version ] && echo '" + prints + "' && echo more\n"
		check.NoError(t, os.WriteFile(script, []byte(text), 0o755))
		if got, err := Said(t.Context(), script, nil); err != nil || got != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
	old := filepath.Join(t.TempDir(), "pgbackrest")
	check.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\n[ \"$1\" = version ] && echo 'pgBackRest 2.45'\n"), 0o755))
	if got, err := Said(t.Context(), old, nil); err != nil || got != "pgBackRest 2.45" {
		t.Errorf("%q (%v)", got, err)
	}
	if _, err := Said(t.Context(), script+"-not-there", nil); err == nil {
		t.Error("a program that is not there has a version")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Said(ended, script, nil); err == nil {
		t.Error("the end of the context is ignored")
	}
}

// A program is asked as the system user that the caller names, where it may, and does not see the caller's environment.
func TestAProgramIsAskedAsAnother(t *testing.T) {
	const secret = "PGHERD_SECRET_OF_THE_TEST"
	t.Setenv(secret, "secret")
	script := filepath.Join(readableDir(t), "program")
	check.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$(id -u) $(id -g) $(id -G) $"+secret+"\"\n"), 0o755))
	var as *syscall.Credential // nobody but root can name one
	want := fmt.Sprint(os.Geteuid(), " ")
	if os.Geteuid() == 0 {
		as, want = &syscall.Credential{Uid: 65534, Gid: 65533}, "65534 65533 65533"
	}
	got, err := Said(t.Context(), script, as)
	if err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
		t.Errorf("it ran as %q, want %q (%v)", got, want, err)
	}
	check.NoError(t, os.Chmod(script, 0o600))
	_, err = Said(t.Context(), script, as)
	if err == nil || strings.Contains(err.Error(), "as the system user 65534") != (as != nil) {
		t.Errorf("a program that the user cannot run: %v", err)
	}
}

// readableDir is a folder that every system user can enter.
func readableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}

// What a program says of its version is kept as it is; where an operator accepts that very text, it passes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"PostgreSQL 16.14 (Debian 16.14-1.pgdg13+1)", "PgBouncer 1.26.1", "pg_dump (PostgreSQL) 17.12",
		"pgBackRest 2.60.0", "PostgreSQL 99999999999999999999.1", "PgBouncer 1.", "PgBouncer 1.2.3.4", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := Parse(text)
		if err != nil {
			return
		}
		if v := (Policy{Accept: []string{text}}).Judge(found); v.Passes == v.Unsupported || found.Text != text {
			t.Errorf("%q was accepted and does not pass: %+v", text, v)
		}
	})
}

// A script that hangs is killed, with what it has started.
func TestAProgramThatHangsIsNotWaitedFor(t *testing.T) {
	script := filepath.Join(t.TempDir(), "program")
	check.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nsleep 10\necho PgBouncer 1.26.1\n"), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	text, err := Said(ctx, script, nil)
	if err == nil || !strings.Contains(err.Error(), "in time") || time.Since(began) > 5*time.Second {
		t.Errorf("%q and %v after %s", text, err, time.Since(began))
	}
}

func TestAPgDumpTakesItsOwnVersionAndOlderOnes(t *testing.T) {
	for dump, takes := range map[string]bool{"16.15": false, "17.11": true, "18.6": true} {
		found := check.Must(Parse("pg_dump (PostgreSQL) " + dump))(t)
		err := found.Dumps(Server("17.12", 170012))
		if (err == nil) != takes || err != nil && !strings.Contains(err.Error(), "pg_dump of 17 or later") {
			t.Errorf("%s: %v", dump, err)
		}
	}
}

func TestWhichDataAProgramRuns(t *testing.T) {
	for text, says := range map[string]string{
		"PostgreSQL 17.12 (Debian 17.12-1)": "",
		"PostgreSQL 16.15":                  "data are of PostgreSQL 17: give the program postgres of 17",
		"PostgreSQL 15.4":                   "it is PostgreSQL 15.4, and servers have PostgreSQL 16 to 18",
		"PostgreSQL 19.0":                   "servers have PostgreSQL 16 to 18",
		"pg_dump (PostgreSQL) 17.12":        "it is pg_dump (PostgreSQL) 17.12: give the program postgres",
	} {
		err := check.Must(Parse(text))(t).Runs(17)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := check.Must(Parse("PostgreSQL 16.15"))(t).Runs(0); err != nil {
		t.Error(err)
	}
}
