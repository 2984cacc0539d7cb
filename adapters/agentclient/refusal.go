package agentclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/ports"
)

const (
	maxRefusal = 64 << 10 // bytes of a refusal's body
	maxMessage = 4 << 10  // bytes of its message that are kept
)

// route is one request of the protocol. later marks the routes that an old agent may lack.
type route struct {
	method, path string
	later        bool
}

// reasons lists the words that this version understands. An unknown reason from a newer agent leaves the outcome unknown,
// because it may or may not be final.
var reasons = map[string]ports.AgentReason{
	protocol.ReasonStale:           ports.ReasonStale,
	protocol.ReasonFenced:          ports.ReasonFenced,
	protocol.ReasonConflict:        ports.ReasonConflict,
	protocol.ReasonClosed:          ports.ReasonClosed,
	protocol.ReasonCompleted:       ports.ReasonCompleted,
	protocol.ReasonNameTaken:       ports.ReasonNameTaken,
	protocol.ReasonNotFound:        ports.ReasonNotFound,
	protocol.ReasonStorageFull:     ports.ReasonStorageFull,
	protocol.ReasonUnavailable:     ports.ReasonUnavailable,
	protocol.ReasonNoRoute:         ports.ReasonNoRoute,
	protocol.ReasonInvalid:         ports.ReasonInvalid,
	protocol.ReasonFailed:          ports.ReasonFailed,
	protocol.ReasonConnectRequired: ports.ReasonConnectRequired,
	protocol.ReasonDatabaseClosed:  ports.ReasonDatabaseClosed,
}

// refusal reads an unsuccessful answer.
func (r route) refusal(resp *http.Response) error {
	if resp.StatusCode >= http.StatusBadRequest {
		var no *ports.AgentRefusal
		switch err := readRefusal(resp); {
		case errors.As(err, &no):
			return no
		case errors.Is(err, errBrokeOff):
			return unknown(err) // it may have been a refusal, of a route that the agent has
		}
	}
	switch {
	case r.later && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed):
		return &ports.AgentRefusal{Reason: ports.ReasonNoRoute, Message: "the agent does not know " + r.method + " of this route"}
	case resp.StatusCode == http.StatusUnauthorized:
		return unknown(errors.New("it does not accept the shared secret"))
	default:
		return unknown(fmt.Errorf("it answered with status %d and no refusal", resp.StatusCode))
	}
}

// readRefusal returns the refusal in an answer as an error, or another error if there is none.
func readRefusal(resp *http.Response) error {
	text, err := readBounded(resp.Body, maxRefusal)
	if err != nil {
		return err
	}
	var no protocol.Refusal
	if err := json.Unmarshal(text, &no); err != nil {
		return err
	}
	reason, ok := reasons[no.Reason]
	if !ok {
		return errors.New("a reason of a newer agent")
	}
	message := strings.ToValidUTF8(no.Message[:min(len(no.Message), maxMessage)], "")
	refusal := &ports.AgentRefusal{Reason: reason, Message: message}
	if g := no.Generations; g != nil {
		refusal.Generations = &ports.AgentGenerations{Applied: g.Applied, Admitted: g.Admitted, Credential: g.Credential}
	}
	return refusal
}
