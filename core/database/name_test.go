package database

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

func TestNames(t *testing.T) {
	good := []string{"abc", "a-b", "a1b", "a--b", "shop-2026", "a" + strings.Repeat("b", 49), "postgres1", "all-of-it"}
	almost := PreviewName + strings.Repeat("a", PreviewDigits-1)
	good = append(good, almost, almost+"a7", almost+"1", PreviewName+"of-shop")
	for _, name := range good {
		if err := ValidateChosenName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := ValidateName(almost + "7"); err != nil {
		t.Errorf("a preview's: %v", err)
	}
	bad := []string{
		"", "a", "ab", "1ab", "-ab", "ab-", "Abc", "aBc", "a_b", "a.b", "a b", " abc", "abc ", "abc\n", "\nabc", "a\x00c",
		"abc\u00e9", "\u0430bc", "ａｂｃ", "a\u200bbc", "abc;drop", `ab"c`, "ab'c", "../abc", "abc.transaction", "ab*",
		"a" + strings.Repeat("b", 50), "\xffabc",
	}
	for _, name := range append(bad, almost+"7") {
		if err := ValidateChosenName(name); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for _, name := range []string{
		"postgres", "template0", "template1", "pgbouncer", "pgherd", "public", "none", "all", "sameuser", "samerole",
		"samegroup", "replication",
	} {
		if err := ValidateChosenName(name); !fault.Has(err, fault.ValidationError) || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongestTexts(t *testing.T) {
	for limit, of := range map[int]func(string) (string, error){64: ValidateDisplayName, 200: ValidateDescription} {
		for n, ok := range map[int]bool{0: limit == 200, 1: true, limit: true, limit + 1: false} {
			if _, err := of(strings.Repeat("é", n)); (err == nil) != ok || err != nil && !fault.Has(err, fault.ValidationError) {
				t.Errorf("%d of %d characters: %v", n, limit, err)
			}
		}
	}
}

func TestChoices(t *testing.T) {
	cases := map[string]struct {
		parse func(string) (string, error)
		all   []string
	}{
		"environment": {text(ParseEnvironment), []string{"production", "staging", "development", "other"}},
		"roleModel":   {text(ParseRoleModel), []string{"managed", "single_login"}},
		"schedule":    {text(ParseSchedule), []string{"none", "daily"}},
		"lifecycle":   {text(ParseLifecycle), []string{"start", "stop", "restart"}},
	}
	for name, v := range cases {
		for _, s := range v.all {
			if got, err := v.parse(s); err != nil || got != s {
				t.Errorf("%s %q: %q, %v", name, s, got, err)
			}
			for _, wrong := range []string{strings.ToUpper(s), s + " ", "", "null", "delete", "created"} {
				if got, err := v.parse(wrong); !fault.Has(err, fault.ValidationError) || got != "" {
					t.Errorf("%s %q: %q, %v", name, wrong, got, err)
				}
			}
		}
	}
}

func text[T ~string](parse func(string) (T, error)) func(string) (string, error) {
	return func(s string) (string, error) { v, err := parse(s); return string(v), err }
}

const someID id.DatabaseID = "0189abcd-ef01-4234-8567-89abcdef0123"

func TestRoleNames(t *testing.T) {
	n := RoleNames(someID, "shop")
	base := "pgh_0189abcdef0142348567" + "89abcdef0123"
	want := Names{
		Owner: "shop", Runtime: base + "_rt", Readonly: base + "_ro", Holder: base + "_holder", ReadGroup: base + "_gro",
		WriteGroup: base + "_grw",
	}
	if n != want {
		t.Errorf("%+v", n)
	}
	for login, name := range map[Login]string{OwnerLogin: "shop", RuntimeLogin: base + "_rt", ReadonlyLogin: base + "_ro", "x": ""} {
		if n.Of(login) != name {
			t.Errorf("%s: %s", login, n.Of(login))
		}
	}
	for _, name := range []string{n.Runtime, n.Readonly, n.Holder, n.ReadGroup, n.WriteGroup} {
		if len(name) > 63 {
			t.Errorf("%s would be cut by PostgreSQL", name)
		}
		if ValidateName(name) == nil {
			t.Errorf("a customer could call a database %s", name)
		}
	}
}

func TestLoginsOfAModel(t *testing.T) {
	if l := Managed.Logins(); len(l) != 3 || l[0] != OwnerLogin || l[1] != RuntimeLogin || l[2] != ReadonlyLogin {
		t.Error(l)
	}
	if l := SingleLogin.Logins(); len(l) != 1 || l[0] != OwnerLogin {
		t.Error(l)
	}
}

// Whatever stands in a password, a reader of URLs finds the same parts again.
func TestConnectionString(t *testing.T) {
	r := Record{Name: "shop", Host: "db.example.org", Port: 6432}
	want := "postgresql://shop:s3cret@db.example.org:6432/shop?sslmode=verify-full"
	if got := r.ConnectionString("shop", "s3cret"); got != want {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		user, password := rapid.StringN(1, 20, -1).Draw(t, "user"), rapid.String().Draw(t, "password")
		host := rapid.SampledFrom([]string{"db.example.org", "192.0.2.1", "2001:db8::1"}).Draw(t, "host")
		u, err := url.Parse(Record{Name: "shop", Host: host, Port: 6432}.ConnectionString(user, password))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := u.User.Password()
		if u.User.Username() != user || got != password || u.Hostname() != host || u.Port() != "6432" || u.Path != "/shop" ||
			u.Query().Get("sslmode") != "verify-full" || u.Fragment != "" {
			t.Fatal(u)
		}
	})
}

func TestSizeIsStale(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	cases := map[string]struct {
		at   *time.Time
		want bool
	}{
		"never": {nil, true}, "now": {ago(0), false}, "a minute": {ago(time.Minute), false},
		"more": {ago(time.Minute + 1), true}, "in the future": {ago(-time.Hour), false},
	}
	for name, v := range cases {
		if got := (Summary{SizedAt: v.at}).SizeIsStale(now); got != v.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A name that is taken needs no quotes anywhere.
func FuzzValidateName(f *testing.F) {
	for _, s := range []string{"shop", "postgres", "abc\n", "a_b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidateName(s) != nil {
			return
		}
		const inner = "abcdefghijklmnopqrstuvwxyz0123456789-"
		if len(s) < 3 || len(s) > 50 || strings.Trim(s, inner) != "" || strings.HasSuffix(s, "-") ||
			s[0] < 'a' || s[0] > 'z' {
			t.Errorf("%q is accepted", s)
		}
	})
}
