package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// ours refuses a request of another protocol, of which nothing more is read.
func (s *Server) ours(next Handle) Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := ofAll(r, command.CheckProtocol(protocolOf(r))); err != nil {
			return err
		}
		return next(w, r)
	}
}

// protocolOf is 0 for a request that names none.
func protocolOf(r *http.Request) int {
	number, _ := strconv.Atoi(r.Header.Get(protocol.Header))
	return number
}

// others remembers the last request of another protocol.
type others struct {
	mu       sync.Mutex
	protocol int
	at       time.Time
}

// note takes a request of a control plane, which looks at the agent every few seconds. An operator's own names no protocol.
func (o *others) note(r *http.Request) {
	number := protocolOf(r)
	if number == 0 || number == command.Protocol {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.protocol, o.at = number, time.Now()
}

// othersCount is how long a request of another protocol counts. While hosts of the control plane are replaced, both come.
const othersCount = 30 * time.Second

// OtherProtocol returns an error while a control plane of another protocol asks.
func (s *Server) OtherProtocol() error {
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	if time.Since(s.others.at) > othersCount {
		return nil
	}
	return command.CheckProtocol(s.others.protocol)
}
