package pooler

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"
)

// The readers below follow PgBouncer's own (1.24): what they make of a file is what PgBouncer makes of it.

type line struct{ key, value string }

// parseIni reads sections; it fails the test where PgBouncer would stop.
func parseIni(t *testing.T, text string) map[string][]line {
	t.Helper()
	sections, section := map[string][]line{}, ""
	for raw := range strings.SplitSeq(text, "\n") {
		raw = strings.TrimSpace(raw)
		switch {
		case raw == "" || strings.HasPrefix(raw, ";") || strings.HasPrefix(raw, "#"):
		case strings.HasPrefix(raw, "["):
			section = strings.Trim(raw, "[]")
		default:
			key, value, found := strings.Cut(raw, "=")
			key = strings.TrimSpace(key)
			bad := strings.ContainsFunc(key, func(r rune) bool {
				return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-*", r)
			})
			if !found || bad || key == "" {
				t.Fatalf("syntax error: %s", raw)
			}
			sections[section] = append(sections[section], line{key, strings.TrimSpace(value)})
		}
	}
	return sections
}

// parsePairs reads a connection string; ok is false where PgBouncer would refuse it.
func parsePairs(text string) (pairs map[string]string, ok bool) {
	pairs = map[string]string{}
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		key, rest, found := strings.Cut(text, "=")
		if !found || key == "" || strings.ContainsRune(key, ' ') {
			return nil, false
		}
		value, rest, ok := pairValue(rest)
		if !ok || value == "" {
			return nil, false
		}
		pairs[key], text = value, rest
	}
	return pairs, true
}

func pairValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, "'") {
		value, rest, _ = strings.Cut(text, " ")
		return value, rest, true
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i] == '\'' {
			if i+1 >= len(text) || text[i+1] != '\'' {
				return out.String(), text[i+1:], true
			}
			i++
		}
		out.WriteByte(text[i])
	}
	return "", "", false
}

type rule struct {
	kind             string
	databases, users []string // "\x00all" for the keyword
	from             netip.Prefix
	method           string
}

// parseRules reads an HBA file into rules; it fails the test where PgBouncer would leave a line out.
func parseRules(t *testing.T, text string) []rule {
	t.Helper()
	var rules []rule
	for raw := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		words := strings.Fields(raw)
		r := rule{kind: words[0], databases: names(t, words[1]), users: names(t, words[2]), method: words[len(words)-1]}
		switch {
		case r.kind == "hostssl" && len(words) == 5:
			r.from = netip.MustParsePrefix(words[3])
		case r.kind != "local" || len(words) != 4:
			t.Fatalf("rule: %s", raw)
		}
		rules = append(rules, r)
	}
	return rules
}

func names(t *testing.T, list string) []string {
	t.Helper()
	var out []string
	for word := range strings.SplitSeq(list, ",") {
		switch inner, quoted := strings.CutPrefix(word, `"`); {
		case quoted:
			out = append(out, strings.TrimSuffix(inner, `"`))
		case word == "all":
			out = append(out, "\x00all")
		default:
			t.Fatalf("unquoted name %s", word)
		}
	}
	return out
}

// admits evaluates the rules for a TLS client, the first match deciding.
func admits(rules []rule, database, user string, from netip.Addr) bool {
	for _, r := range rules {
		if r.kind == "hostssl" && r.from.Contains(from) && named(r.databases, database) && named(r.users, user) {
			return r.method == "scram-sha-256"
		}
	}
	return false
}

func named(list []string, name string) bool {
	for _, n := range list {
		if n == name || n == "\x00all" {
			return true
		}
	}
	return false
}

// FuzzRender holds that no text whatever in a state gets out of its place: it is refused, or reads back as it was.
func FuzzRender(f *testing.F) {
	f.Add("shop", "shop", "secret", "/var/lib/x", "127.0.0.1")
	f.Add("a' pool_size='999", "x\n[users]", "s\" \"t", "/a\nauth_type = any", "h' user='postgres")
	f.Add("all", "all", `""`, "/with space/x", "/run/post'gres")
	f.Fuzz(func(t *testing.T, database, login, secret, dir, host string) {
		s := testSettings()
		s.AuthPassword, s.Dir, s.ServerHost = secret, dir, host
		files, err := Render(State{Settings: s, Entries: []Entry{{Database: database, Logins: []Login{{login, 3}}}}})
		if err != nil {
			return
		}
		sections := parseIni(t, contentOf(t, files, "databases-")+contentOf(t, files, "users-"))
		if len(sections) != 2 || len(sections["databases"]) != 3 || len(sections["users"]) != 1 {
			t.Fatalf("sections: %v", sections)
		}
		for _, l := range sections["databases"] {
			pairs, ok := parsePairs(l.value)
			if !ok || pairs["host"] != host || len(pairs["user"]+pairs["password"]) > 0 {
				t.Fatalf("entry %s reads as %v", l.key, pairs)
			}
			if l.key != s.MaintenanceDatabase && pairs["dbname"] != database {
				t.Fatalf("entry %s leads to %q", l.key, pairs["dbname"])
			}
		}
		main := parseIni(t, strings.SplitN(string(files.Main.Content), "\n\n", 2)[1])
		for _, l := range main["pgbouncer"] {
			if l.key == "auth_type" && l.value != "hba" {
				t.Fatalf("auth_type reads as %q", l.value)
			}
		}
		if strings.Count(string(files.Main.Content), "\n") != 2+1+1+len(main["pgbouncer"]) {
			t.Fatal("a setting grew a line")
		}
		checkAccounts(t, contentOf(t, files, "accounts-"), secret)
	})
}

func checkAccounts(t *testing.T, text, secret string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("accounts: %d lines", len(lines))
	}
	quoted := strings.TrimPrefix(lines[1], `"pgherd_pooler" `)
	if inner := quoted[1 : len(quoted)-1]; strings.ReplaceAll(inner, `""`, `"`) != secret {
		t.Fatalf("password reads as %q", inner)
	}
}
