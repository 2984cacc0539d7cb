package agentclient

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Options are the limits of a fleet; a zero field means its default.
type Options struct {
	UserAgent   string        // what agents are told that calls; pgherd
	DialTimeout time.Duration // of name look-up, TCP and TLS together; 5 s
	// MaxCalls is how many calls may run at a time to one server; 32. Further calls wait until their context ends. How many of
	// them are of one account is for the caller to bound. Downloads and uploads have a pool of their own without a limit: whoever
	// opens them bounds them.
	MaxCalls int
	// AnswerWait is how long an agent may take to begin its answer to a call, and for each further piece of it, so that a hanging
	// one does not hold a worker forever; 2 min. The outcome is unknown then, and the command is sent again.
	AnswerWait time.Duration
	// DownloadWait is how long an agent may take to begin a download, and for each further piece of it, and to take each piece of
	// an upload and answer it; 30 s.
	DownloadWait time.Duration
	// Tracer shows calls in the traces of those for whom they are made, and agents what they continue; by default there are no
	// traces.
	Tracer trace.Tracer
}

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "pgherd"
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = 5 * time.Second
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = 32
	}
	if o.AnswerWait <= 0 {
		o.AnswerWait = 2 * time.Minute
	}
	if o.DownloadWait <= 0 {
		o.DownloadWait = 30 * time.Second
	}
	if o.Tracer == nil {
		o.Tracer = trace.Off{}
	}
	return o
}

// Fleet implements ports.Fleet. It is safe for concurrent use.
type Fleet struct {
	box     ports.SecretBox
	options Options

	mu      sync.Mutex
	members map[id.ServerID]member
}

// member is a client and the record that it was made from.
type member struct {
	from   server.Server
	client *client
}

// New makes a fleet that opens the servers' shared secrets with box.
func New(box ports.SecretBox, o Options) *Fleet {
	return &Fleet{box: box, options: o.withDefaults(), members: map[id.ServerID]member{}}
}

// Agent returns the agent of a server and reuses the connections of earlier calls, unless the record has another URL, secret or
// CA than before. A record that cannot be used is ErrAgentUnreachable.
func (f *Fleet) Agent(s server.Server) (ports.Agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.members[s.ID]
	if found && sameAgent(known.from, s) {
		return known.client, nil
	}
	c, err := f.newClient(s)
	if err != nil {
		return nil, fmt.Errorf("%w: server %s: %w", ports.ErrAgentUnreachable, s.ID, err)
	}
	if found {
		known.client.closeIdle()
	}
	f.members[s.ID] = member{from: s, client: c}
	return c, nil
}

// Close closes idle connections; running calls continue.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.client.closeIdle()
	}
	clear(f.members)
}

func sameAgent(a, b server.Server) bool {
	return a.AgentURL == b.AgentURL && a.CA == b.CA && bytes.Equal(a.SealedSecret, b.SealedSecret)
}

func (f *Fleet) newClient(s server.Server) (*client, error) {
	base, err := parseAgentURL(s.AgentURL)
	if err != nil {
		return nil, err
	}
	roots, err := parseCA(s.CA)
	if err != nil {
		return nil, err
	}
	secret, err := f.box.Open(s.SealedSecret, s.SecretContext())
	if err != nil {
		return nil, fmt.Errorf("opening its shared secret: %w", err)
	}
	if strings.ContainsFunc(string(secret), func(r rune) bool { return r <= ' ' || r > '~' }) || len(secret) == 0 {
		return nil, errors.New("its shared secret is no bearer token: printable ASCII without spaces is")
	}
	return &client{
		base:          base,
		authorization: "Bearer " + string(secret),
		userAgent:     f.options.UserAgent,
		server:        s.ID,
		tracer:        f.options.Tracer,
		calls:         newPool(roots, f.options.DialTimeout, f.options.MaxCalls, f.options.AnswerWait),
		downloads:     newPool(roots, f.options.DialTimeout, unlimited, f.options.DownloadWait),
	}, nil
}

// parseAgentURL accepts https://host[:port][/path] and returns it without a slash at the end.
func parseAgentURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("its agent URL is not of the form https://host[:port][/path]")
	}
	return strings.TrimRight(u.String(), "/"), nil
}
