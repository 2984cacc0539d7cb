package serve

import (
	"time"

	"github.com/pgherd/pgherd/core/download"
	"github.com/pgherd/pgherd/core/guests"
)

// Limits keep slow or greedy clients from using up resources that others need.
type Limits struct {
	HeaderTimeout  time.Duration // from a request's first byte, or the connection's start, to the end of its header
	HeaderBytes    int           // request line and header; more is HEADER_TOO_LARGE
	BodyTimeout    time.Duration // for a JSON body
	Upload         download.Rule // what the client has to keep up over all reads of a streamed body
	IdleTimeout    time.Duration // between two requests of a connection
	WriteTimeout   time.Duration // for each write of an answer; a download's has as long as Download allows where that is longer
	Download       download.Rule // what the client of a download has to keep up over all its writes
	HandlerTimeout time.Duration // for everything except streams
	// Connections of the process, and of one client address (IPv6: of a /64 network) that is no proxy. See conn.Crowd for what
	// happens with one more.
	Connections, ConnectionsPerAddress int
	// Admissions is how many requests are admitted at a time, half of them from one client address: see guests.Desk.
	Admissions int
}

// DefaultLimits suit a host that serves the API behind a proxy or by itself.
func DefaultLimits() Limits {
	return Limits{
		HeaderTimeout:  10 * time.Second,
		HeaderBytes:    8 << 10,
		BodyTimeout:    10 * time.Second,
		Upload:         download.Rule{Rate: 32 << 10, Window: 30 * time.Second},
		IdleTimeout:    75 * time.Second,
		WriteTimeout:   30 * time.Second,
		Download:       download.Rule{Rate: 32 << 10, Window: 30 * time.Second},
		HandlerTimeout: 90 * time.Second, // creating a database waits up to a minute for its proof

		Connections: 10_000, ConnectionsPerAddress: 256,
		Admissions: guests.Admitted,
	}
}
