package single

import (
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Whoever else sets the machine up again, as with another home, has a key of their own. Nobody's ends.
func TestEachAdministratorHasAKey(t *testing.T) {
	d := newDebian(t)
	d.up(meant)
	first := d.profile()
	d.home = d.path("/home/bob/.config")
	for range 2 {
		d.up(meant)
	}
	if bobs := d.profile(); len(d.keys) != 2 || bobs.Key != d.texts["k2"] || first.Key != d.texts["k1"] {
		t.Errorf("the keys are %v, and svc has %+v", d.texts, bobs)
	}
	if a, b := d.keys[0]["label"], d.keys[1]["label"]; a == b || !strings.HasSuffix(b, "/home/bob/.config/svc") {
		t.Errorf("the keys are called %q and %q", a, b)
	}
	// Who has lost theirs gets another one in place of it.
	check.NoError(t, os.RemoveAll(d.home))
	d.up(meant)
	if bobs := d.profile(); len(d.keys) != 2 || bobs.Key != d.texts["k21"] || first.Key != d.texts["k1"] {
		t.Errorf("the keys are %v, and svc has %+v", d.texts, bobs)
	}
}

// A key that was revoked, or has ended, is not brought back where a profile has it, and is not replaced where none has.
func TestAKeyThatHasEndedStaysSo(t *testing.T) {
	for field, at := range map[string]string{"revokedAt": "2026-01-02T03:04:05Z", "expiresAt": "2026-01-02T03:04:05Z"} {
		d := newDebian(t)
		d.up(meant)
		d.keys[0][field] = at
		d.up(meant)
		if len(d.keys) != 1 || d.profile().Key != d.texts["k1"] {
			t.Errorf("%s: the keys are %v", field, d.keys)
		}
		check.NoError(t, os.RemoveAll(d.home))
		d.up(meant)
		if len(d.keys) != 2 || d.profile().Key != d.texts["k2"] {
			t.Errorf("%s: the keys are %v, and svc has %+v", field, d.keys, d.profile())
		}
	}
}

// A profile may be that of another account, or of an installation before.
func TestAProfileOfAnotherAccountStays(t *testing.T) {
	d := newDebian(t)
	d.write("/root/.config/svc/config.json",
		`{"current":"db1.example.com","profiles":{"db1.example.com":{"url":"https://x","apiKey":"pgh_other_text"}}}`)
	said := d.up(meant)
	if d.profile().Key != "pgh_other_text" || len(d.keys) > 0 || !strings.Contains(said, "svc auth logout --profile db1.exam") {
		t.Errorf("svc has %+v, the keys are %v, and it says\n%s", d.profile(), d.keys, said)
	}
}

func TestALongPathIsCut(t *testing.T) {
	for home, want := range map[string]string{
		"/root/.config":                         "pgherd setup, /root/.config/svc",
		"/" + strings.Repeat("é", 100) + "/bob": "pgherd setup, " + strings.Repeat("é", 42) + "/bob/svc",
	} {
		t.Setenv("XDG_CONFIG_HOME", home)
		if got := check.Must(keyLabel())(t); got != want {
			t.Errorf("%s: %q, not %q", home, got, want)
		}
	}
}

func TestWithoutSvcThereIsNoKey(t *testing.T) {
	d := newDebian(t)
	check.NoError(t, os.Remove(d.path(svc)))
	d.home = ""
	if said := d.up(meant); len(d.keys) > 0 || !strings.Contains(said, "pgherd admin key create") {
		t.Errorf("the keys are %v, and it says\n%s", d.keys, said)
	}
}
