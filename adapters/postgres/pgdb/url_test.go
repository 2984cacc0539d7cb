package pgdb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

// addresses are the servers that a text names, in order; or the error.
func addresses(text string) (string, error) {
	cfg, err := parse(text)
	if err != nil {
		return "", err
	}
	var list []string
	for _, one := range each(cfg) {
		list = append(list, address(one))
	}
	return strings.Join(list, " "), nil
}

func TestHostsOfAURL(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:p@a/m":                                           "a:5432",
		"postgres://u:p@a:1/m?sslmode=disable":                         "a:1",
		"postgresql://u:p@a,b/m":                                       "a:5432 b:5432",
		"postgres://u:p@a:1,b:2,c/m?sslmode=disable":                   "a:1 b:2 c:5432",
		"postgres://u:p%2C%40@a:1,b:2/m":                               "a:1 b:2",
		"postgres://a:1,b:2":                                           "a:1 b:2",
		"postgres://u@[::1]:1,[fe80::2],10.0.0.1:3/m":                  "[::1]:1 [fe80::2]:5432 10.0.0.1:3",
		"postgres://u@a,b/m?port=1,2":                                  "a:1 b:2",
		"postgres://u@%2Frun%2Fone,b/m":                                "[/run/one]:5432 b:5432",
		"postgres:///m?host=a,b&port=1,2":                              "a:1 b:2",
		"host=a,b port=1,2 user=u password='x y' dbname=m":             "a:1 b:2",
		"host=a,b port=7 user=u target_session_attrs=primary dbname=m": "a:7 b:7",
	} {
		if got, err := addresses(text); err != nil || strings.ReplaceAll(got, "/run/one:", "[/run/one]:") != want {
			t.Errorf("%s names %s, want %s (%v)", text, got, want, err)
		}
		listening, err := listenURL(text, 5*time.Second)
		if got, again := addresses(listening); err != nil || again != nil ||
			strings.ReplaceAll(got, "/run/one:", "[/run/one]:") != want {
			t.Errorf("%s listens at %s, %v, %v", text, got, err, again)
		}
	}
}

// What cannot be used is refused without the password, and a server that takes no writes is never asked for.
func TestURLsThatCannotBeUsed(t *testing.T) {
	for text, want := range map[string]error{
		"postgres://u:geheim@a:x,b/m":                           ErrURL,
		"postgres://u:geheim@a:1,b:2:3/m":                       ErrURL,
		"postgres://u:geheim@a:1,/m":                            ErrURL,
		"postgres://u:geheim@a:99999,b/m":                       ErrURL,
		"postgres://u:geheim@a,b/m?port=1,2,3":                  ErrURL,
		"postgres://u:geheim@a b,c/m?sslmode=geheim":            ErrURL,
		"host=a password=geheim sslmode=sometimes":              ErrURL,
		"postgres://u:geheim@a,b/m?target_session_attrs=any%00": ErrURL,
		"postgres://u:geheim@a/m?target_session_attrs=standby":  ErrTarget,
	} {
		_, err := parse(text)
		if !errors.Is(err, want) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for _, attrs := range []string{"", "?target_session_attrs=any", "?target_session_attrs=read-write"} {
		if cfg, err := parse("postgres://u@a/m" + attrs); err != nil || cfg.TargetSessionAttrs != pq.TargetSessionAttrsReadWrite {
			t.Errorf("%q asks for %q, %v", attrs, cfg.TargetSessionAttrs, err)
		}
	}
}

// A connection string that is taken names the same hosts to those who listen; what is refused is not repeated.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"postgres://u:p@a:1,b:2/m?x=y", "postgres://[::1],b", "host=a,b port=1", "postgres://,", "postgresql://u@a,b@c,d/%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		named, err := addresses(text)
		if err != nil {
			if !errors.Is(err, ErrURL) && !errors.Is(err, ErrTarget) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if strings.Contains(text, "\x00") {
			return
		}
		listening, err := listenURL(text, time.Second)
		if err != nil {
			t.Fatalf("%q cannot be listened at: %v", text, err)
		}
		if again, err := addresses(listening); err != nil || again != named {
			t.Errorf("%q names %s, and to listen %s (%v)", text, named, again, err)
		}
	})
}
