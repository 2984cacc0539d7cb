package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// Whatever the service, or another customer, has put into a text: nothing of it moves the cursor or turns the text around, what
// is shown is shown as it is, and JSON means the same.
func FuzzVisible(f *testing.F) {
	for _, seed := range []string{
		"", "plain é漢", "a\x1b[2J\r\n\t", "\u009b1m\x7f", "\u202eevil\u2066", "\U000e0041\ufeff\u200b",
		"\xff\xc3", `\u001b"\`, "\u2028",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hidden := func(r rune) bool { return !unicode.IsGraphic(r) }
		shown := terminal.Visible(text)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, hidden) || terminal.Visible(shown) != shown {
			t.Errorf("%q is shown as %q", text, shown)
		}
		if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) && shown != text {
			t.Errorf("%q is shown as %q", text, shown)
		}
		lines := terminal.VisibleLines(text)
		inLine := strings.ReplaceAll(lines, "\n", "")
		if strings.Count(lines, "\n") != strings.Count(text, "\n") || strings.ContainsFunc(inLine, hidden) {
			t.Errorf("%q is shown as %q", text, lines)
		}
		raw := check.Must(json.MarshalIndent(map[string]string{"a": text}, "", "  "))(t)
		in := terminal.VisibleJSON(string(raw))
		var want, got map[string]string
		check.NoError(t, json.Unmarshal(raw, &want))
		if err := json.Unmarshal([]byte(in), &got); err != nil || got["a"] != want["a"] ||
			strings.ContainsFunc(strings.ReplaceAll(in, "\n", ""), hidden) {
			t.Errorf("%s is shown as %s, which is %q, %v", raw, in, got["a"], err)
		}
	})
}
