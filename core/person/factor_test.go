package person_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/person"
)

// RFC 6238, appendix B, for SHA-1: the last six of its eight digits.
func TestCodesOfTheRFC(t *testing.T) {
	secret := person.Secret("12345678901234567890")
	for seconds, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := secret.Code(seconds / 30); got != want {
			t.Errorf("at %d: %s, want %s", seconds, got, want)
		}
	}
}

// A code works once, within a step of its time, and none works that is older than the last one.
func TestNoCodeWorksTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := person.NewSecret([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "secret")))
		f, now := person.Factor{}, time.Unix(1_800_000_000, 0)
		last := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "pause")) * time.Second)
			step := now.Unix()/30 + rapid.Int64Range(-3, 3).Draw(t, "off")
			code := secret.Code(step)
			next, right := f.Accept(secret, code, now)
			off := step - now.Unix()/30
			allowed := off >= -1 && off <= 1 && step > last
			if right != allowed && !twin(secret, code, now, last) {
				t.Fatalf("a code of %d steps off, after step %d: %t", off, step-last, right)
			}
			if right {
				f, last = next, next.LastStep
			}
		}
	})
}

// twin reports whether a code is, by chance, that of another step that is allowed.
func twin(s person.Secret, code string, now time.Time, last int64) bool {
	for step := now.Unix()/30 - 1; step <= now.Unix()/30+1; step++ {
		if step > last && s.Code(step) == code {
			return true
		}
	}
	return false
}

func TestWhatIsNoCode(t *testing.T) {
	secret, now := person.NewSecret([32]byte{1}), time.Unix(1_800_000_000, 0)
	right := secret.Code(now.Unix() / 30)
	for _, text := range []string{"", "0", right[1:], right + "0", " " + right, strings.Repeat("9", 1000)} {
		if _, ok := (person.Factor{}).Accept(secret, text, now); ok {
			t.Errorf("%q is right", text)
		}
	}
}

func TestAddressOfASecret(t *testing.T) {
	secret := person.NewSecret([32]byte{1, 2, 3})
	u, err := url.Parse(secret.Address("A&B: databases", "ada+x@example.org"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/A&B: databases:ada+x@example.org" {
		t.Errorf("%v, %v", u, err)
	}
	if q := u.Query(); q.Get("secret") != secret.Text() || q.Get("issuer") != "A&B: databases" || len(q) != 2 {
		t.Errorf("%v", q)
	}
	if len(secret.Text()) != 32 {
		t.Errorf("%d characters to type", len(secret.Text()))
	}
}

func TestRecoveryCodes(t *testing.T) {
	const random = "0123456789abcAZ"
	shown := person.RecoveryText(random)
	if shown != "01234-56789-abcAZ" {
		t.Error(shown)
	}
	want, _ := person.ParseRecovery(random)
	for _, typed := range []string{shown, strings.ReplaceAll(shown, "-", " "), " " + shown + " "} {
		if hash, ok := person.ParseRecovery(typed); !ok || hash != want {
			t.Errorf("%q: %x, %t", typed, hash, ok)
		}
	}
	for _, bad := range []string{"", random[1:], random + "0", shown[1:], strings.ToUpper(shown) + "é", "01234_56789_abcAZ"} {
		if _, ok := person.ParseRecovery(bad); ok {
			t.Errorf("%q is a code", bad)
		}
	}
	if other, _ := person.ParseRecovery(strings.ToLower(random)); other == want {
		t.Error("letter case means nothing")
	}
}

// A recovery code is the same with other separators.
func FuzzParseRecovery(f *testing.F) {
	for _, text := range []string{"01234-56789-abcAZ", "0123456789abcAZ", "", "-----"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hash, ok := person.ParseRecovery(text)
		if again, same := person.ParseRecovery("-" + text + " "); again != hash || same != ok {
			t.Errorf("%q means something else with separators around it", text)
		}
	})
}
