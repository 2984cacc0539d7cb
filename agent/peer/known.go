package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Known are the peers that admit this agent, as they were last told of. Only this process knows of them: a command that needs one
// tells of it each time.
type Known struct {
	// Patience is how long a peer may give nothing before it is away; Piece is how long the next piece of a file may take. Set them
	// before the first file.
	Patience, Piece time.Duration

	mu  sync.Mutex
	all map[id.OperationID]command.Peer
}

// NewKnown returns none.
func NewKnown() *Known {
	return &Known{Patience: 2 * time.Minute, Piece: time.Minute, all: map[id.OperationID]command.Peer{}}
}

// Note has the peer of an operation be this one from now on, wherever it was before.
func (k *Known) Note(op id.OperationID, p command.Peer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[op] = p
}

// Forget forgets the peer of an operation.
func (k *Known) Forget(op id.OperationID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, op)
}

func (k *Known) of(op id.OperationID) (command.Peer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, known := k.all[op]
	if !known {
		return p, &AwayError{Cause: errors.New("nobody has said where it is")}
	}
	return p, nil
}

// AwayError says that a peer does not answer, or cannot now. It may be back soon. It does not unwrap to its cause: the end of a
// connection is no end of what is read over it.
type AwayError struct {
	Cause error
	After time.Duration // that it was waited for
}

func (e *AwayError) Error() string {
	return fmt.Sprintf("the other server does not answer: %v", e.Cause)
}

// Away implements jobs.Away.
func (*AwayError) Away() {}

// Waited implements jobs.Awaited.
func (e *AwayError) Waited() time.Duration { return e.After }

// UnlikeError says that a peer does not give what was asked for. Its text may be shown to the customer.
type UnlikeError struct{ What string }

func (e *UnlikeError) Error() string { return "the other server " + e.What }

// Unwrap returns the refusal that it is.
func (e *UnlikeError) Unwrap() error { return command.Refuse(command.ReasonFailed, "%s", e.Error()) }

// ForCustomer implements jobs.Explained.
func (e *UnlikeError) ForCustomer() string { return e.Error() }

var errNotThere = &UnlikeError{"does not have the file"}

// errAnew is in the *AwayError of a file that was made anew: what has come of it is worth nothing.
var errAnew = errors.New("it makes the file anew")

// The bounds of a conversation with a peer.
const (
	dialTime   = 10 * time.Second
	answerTime = 3 * time.Minute // to skip what was sent before takes as long as to read it
	mostHeader = 64 << 10
	mostAnswer = 64 << 10
)

// dial connects to a peer over TLS, and nobody else: its certificate is one of the given authorities, or of the machine's.
func dial(ctx context.Context, p command.Peer, address string) (net.Conn, error) {
	var roots *x509.CertPool
	if p.CA != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(p.CA)) {
			return nil, &UnlikeError{"has a CA without a certificate in PEM"}
		}
	}
	d := &tls.Dialer{
		NetDialer: &net.Dialer{KeepAlive: keepAlive},
		Config:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return d.DialContext(ctx, "tcp", address)
}

const keepAlive = 15 * time.Second

// request is a request to a peer, with its token.
func request(ctx context.Context, p command.Peer, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.Token)
	req.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	return req, nil
}

// get sends one request over a connection of its own, and follows no redirect. The caller closes the body.
func get(ctx context.Context, p command.Peer, path string) (*http.Response, error) {
	req, err := request(ctx, p, path)
	if err != nil {
		return nil, err
	}
	one := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, p, address) },
		Proxy:          nil, DisableKeepAlives: true, DisableCompression: true,
		ResponseHeaderTimeout: answerTime, MaxResponseHeaderBytes: mostHeader,
	}
	resp, err := one.RoundTrip(req)
	if err != nil {
		return nil, unreached(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refused(resp)
	}
	return resp, nil
}

// reachTime bounds a try of a peer.
const reachTime = 15 * time.Second

// Reach implements command.ReachPeer: it tries once.
func Reach(ctx context.Context, q command.ReachPeer) (found command.PeerReached, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	resp, err := get(ctx, q.Peer, reachPath(q.Operation))
	if err == nil {
		return found, resp.Body.Close()
	}
	found.Why = err.Error()
	return found, nil
}

// unreached is AwayError, but for what has been decided.
func unreached(err error) error {
	var unlike *UnlikeError
	if errors.As(err, &unlike) {
		return unlike
	}
	return &AwayError{Cause: err}
}

// refused is what an answer means that is none. Nothing of its text is shown to anybody.
func refused(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return &UnlikeError{"does not admit this one"}
	}
	var no command.Refusal
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err == nil {
		err = json.Unmarshal(text, &no)
	}
	switch {
	case err == nil && no.Reason == command.ReasonNotFound:
		return errNotThere
	case err == nil && no.Reason == command.ReasonAltered:
		return &AwayError{Cause: errAnew}
	case err == nil && no.Reason == command.ReasonInvalid, resp.StatusCode/100 == 3:
		return &UnlikeError{"answered with the status " + strconv.Itoa(resp.StatusCode)}
	}
	return &AwayError{Cause: fmt.Errorf("it answered with the status %d", resp.StatusCode)}
}
