package agentclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/command"
)

const (
	maxRefusal = 64 << 10 // bytes of a refusal's body
	maxMessage = 4 << 10  // bytes of its message that are kept
)

// refusal reads an unsuccessful answer.
func refusal(r command.Route, resp *http.Response) error {
	if resp.StatusCode >= http.StatusBadRequest {
		var no *command.Refusal
		switch err := readRefusal(resp); {
		case errors.As(err, &no):
			return no
		case errors.Is(err, errBrokeOff):
			return unknown(err) // it may have been a refusal, of a route that the agent has
		}
	}
	switch {
	case !everyAgentHas(r) && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed):
		return command.Refuse(command.ReasonNoRoute, "the agent does not know %s of this route", r.Method)
	case resp.StatusCode == http.StatusUnauthorized:
		return unknown(errors.New("it does not accept the shared secret"))
	default:
		return unknown(fmt.Errorf("it answered with status %d and no refusal", resp.StatusCode))
	}
}

// everyAgentHas reports whether what has no such route is no agent.
func everyAgentHas(r command.Route) bool {
	return r == commands || r == command.AskCapabilities{}.Route()
}

// readRefusal returns the refusal in an answer as an error, or another error if there is none.
func readRefusal(resp *http.Response) error {
	text, err := readBounded(resp.Body, maxRefusal)
	if err != nil {
		return err
	}
	no := &command.Refusal{}
	if err := json.Unmarshal(text, no); err != nil {
		return err
	}
	if !slices.Contains(command.Reasons, no.Reason) {
		return errors.New("a reason that no agent has")
	}
	no.Message = strings.ToValidUTF8(no.Message[:min(len(no.Message), maxMessage)], "")
	return no
}
