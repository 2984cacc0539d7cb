package agentclient

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/command"
)

// Whatever comes in the place of a refusal: only a reason that agents have says that the work was not done, and what it says can
// be stored and shown. After everything else, the outcome is unknown.
func FuzzRefusal(f *testing.F) {
	for _, seed := range []struct {
		status int
		body   string
	}{
		{409, `{"reason":"stale","message":"because","generations":{"applied":2,"admitted":5}}`}, {409, `{"reason":"of tomorrow"}`},
		{502, "<html>"}, {401, ""},
		{404, `{"reason":"failed","message":"` + strings.Repeat("é", 3000) + `"}`}, {302, `{"reason":"stale"}`},
		{500, `{"REASON":"stale","message":"\u0000\ud800"}`}, {400, "null"}, {0, "{"}, {405, `{"reason":"invalid"} {}`},
	} {
		f.Add(seed.status, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, r := range []command.Route{commands, command.DatabaseSize{}.Route()} {
			err := refusal(r, &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(string(body)))})
			var no *command.Refusal
			switch {
			case err == nil:
				t.Fatalf("%d %q is none", status, body)
			case !errors.As(err, &no):
				if !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%d %q: %v", status, body, err)
				}
			case status < 400, !slices.Contains(command.Reasons, no.Reason), len(no.Message) > maxMessage,
				!utf8.ValidString(no.Message):
				t.Errorf("%d %q: %+v", status, body, no)
			}
		}
	})
}
