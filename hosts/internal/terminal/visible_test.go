package terminal_test

import (
	"encoding/json"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// What is printed as JSON is shown as it is, too, and means the same.
func TestJSONIsVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2J": `a\u001b[2J`, "\u009b1m\x7f": `\u009b1m\u007f`, "\u202eevil": `\u202eevil`, "\U000e0041": `\udb40\udc41`,
		"é漢": "é漢",
	} {
		raw := terminal.VisibleJSON(string(check.Must(json.Marshal(text))(t)))
		var back string
		if err := json.Unmarshal([]byte(raw), &back); err != nil || raw != `"`+want+`"` || back != text {
			t.Errorf("%q is %s, and back %q, %v", text, raw, back, err)
		}
	}
}
