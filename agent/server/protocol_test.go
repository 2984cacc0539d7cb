package server_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// A request of another protocol is refused before it is read, whatever the agent would say to it, and the agent is then not well.
// What it says of itself it says in any protocol.
func TestRequestsOfAnotherProtocol(t *testing.T) {
	w := &work{}
	r := start(t, w)
	token := "Bearer " + secret
	for number, says := range map[string]string{
		strconv.Itoa(command.Protocol + 1): "too old", strconv.Itoa(command.Protocol - 1): "too new", "": "too new", "x": "too new",
	} {
		for path, body := range map[string]string{"/v1/commands": valid, "/v1/logins/inspect": "not the JSON of this protocol"} {
			status, answer := r.speaking(t, number, "POST", path, token, body)
			if status != http.StatusNotImplemented || !strings.Contains(answer, string(command.ReasonOtherProtocol)) ||
				!strings.Contains(answer, says) {
				t.Errorf("protocol %q, %s: %d %s", number, path, status, answer)
			}
		}
		for _, path := range []string{"/v1/capabilities", "/health", "/metrics"} {
			if status, answer := r.speaking(t, number, "GET", path, token, ""); status != http.StatusOK {
				t.Errorf("protocol %q, %s: %d %s", number, path, status, answer)
			}
		}
	}
	if w.got.Load() != nil {
		t.Errorf("carried out %+v", w.got.Load())
	}
}

func TestAnAgentSaysThatAnotherProtocolIsUsed(t *testing.T) {
	r := start(t, &work{})
	for _, c := range []struct{ protocol, token, says string }{
		{strconv.Itoa(command.Protocol + 1), "wrong", ""}, {"", "Bearer " + secret, ""},
		{strconv.Itoa(command.Protocol), "Bearer " + secret, ""},
		{strconv.Itoa(command.Protocol + 1), "Bearer " + secret, "too old"},
		{strconv.Itoa(command.Protocol), "Bearer " + secret, "too old"}, // another host of the control plane may be newer
	} {
		r.speaking(t, c.protocol, "GET", "/v1/capabilities", c.token, "")
		err := r.server.OtherProtocol()
		if c.says == "" {
			check.NoError(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("after protocol %q: %v", c.protocol, err)
		}
	}
}
