package agentclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
)

// surveyTime bounds the look at each of the two addresses of a server.
const surveyTime = 10 * time.Second

// Survey implements ports.Fleet. It makes connections of its own, and ends them.
func (f *Fleet) Survey(ctx context.Context, s server.Server) server.Survey {
	var seen server.Survey
	public := make(chan server.Reach, 1)
	go func() { public <- lookAtPublic(ctx, s) }()
	seen.Agent = f.lookAtAgent(ctx, s, &seen)
	seen.Public = <-public
	return seen
}

// lookAtAgent asks the agent as every other call does, and says how far it came.
func (f *Fleet) lookAtAgent(ctx context.Context, s server.Server, seen *server.Survey) server.Reach {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	r := server.Reach{Address: s.AgentURL}
	roots, err := parseCA(s.CA)
	if err != nil {
		return r.With(server.NoCA, err)
	}
	secret, err := f.box.Open(s.SealedSecret, s.SecretContext())
	if err != nil {
		return r.With(server.Sealed, err)
	}
	conn, err := dial(ctx, s.AgentURL, roots, &r)
	note(&r, certificates(conn, err))
	if err != nil {
		return r.With(troubleOf(err), err)
	}
	defer func() { _ = conn.Close() }()
	var can command.Capabilities
	header, err := ask(ctx, conn, s.AgentURL+"/v1/capabilities", string(secret), &can)
	if err != nil {
		return r.With(troubleOf(err), err)
	}
	if at, err := http.ParseTime(header.Get("Date")); err == nil {
		seen.Ahead = at.Sub(time.Now().Truncate(time.Second))
	}
	tell(seen, can)
	return r
}

// tell has a sight show what the agent says. Of one that has another protocol, nothing else is known to mean the same.
func tell(seen *server.Survey, can command.Capabilities) {
	seen.Version, seen.Protocol = can.Version, can.Protocol
	if can.Protocol != command.Protocol {
		return
	}
	seen.Installation, seen.Connections = can.Installation, can.Connections
	seen.Postgres, seen.PgBouncer, seen.Reasons = can.State.Postgres, can.State.PgBouncer, can.Reasons
	seen.SlowQueries, seen.Programs, seen.PostgresVersion = can.SlowQueries, can.Programs, can.PostgresVersion
}

// dial connects to an agent. A transport would go on doing so when the context has ended.
func dial(ctx context.Context, agentURL string, roots *x509.CertPool, r *server.Reach) (*tls.Conn, error) {
	at, err := url.Parse(agentURL)
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "443")), r)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: at.Hostname(), MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// connect notes to where the connection leads.
func connect(ctx context.Context, address string, r *server.Reach) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		r.At = conn.RemoteAddr().(*net.TCPAddr).AddrPort() //nolint:forcetypeassert // as of every TCP connection
	}
	return conn, err
}

// certificates are those that were shown in a handshake, whether they were accepted or not.
func certificates(conn *tls.Conn, err error) []*x509.Certificate {
	var no *tls.CertificateVerificationError
	if errors.As(err, &no) {
		return no.UnverifiedCertificates
	}
	if err != nil {
		return nil
	}
	return conn.ConnectionState().PeerCertificates
}

func note(r *server.Reach, shown []*x509.Certificate) {
	if len(shown) == 0 {
		return
	}
	r.Ends, r.Names = shown[0].NotAfter, slices.Clone(shown[0].DNSNames)
	for _, ip := range shown[0].IPAddresses {
		r.Names = append(r.Names, ip.String())
	}
}

// errNoAgent is an answer that no agent gives.
type errNoAgent struct{ error }

var errWrongSecret = errors.New("it does not accept the shared secret")

func ask(ctx context.Context, conn net.Conn, address, secret string, to any) (http.Header, error) {
	client := http.Client{
		Transport: &http.Transport{
			DialTLSContext:    func(context.Context, string, string) (net.Conn, error) { return conn, nil },
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, errWrongSecret
	default:
		return nil, errNoAgent{fmt.Errorf("it answers with status %d", resp.StatusCode)}
	}
	text, err := readBounded(resp.Body, maxAnswer)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return nil, errNoAgent{errors.New("its answer is not an agent's")}
	}
	return resp.Header, nil
}

// lookAtPublic does what a customer's program does until it would log in.
func lookAtPublic(ctx context.Context, s server.Server) server.Reach {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	r := server.Reach{Address: net.JoinHostPort(s.PublicHost, strconv.Itoa(s.PublicPort))}
	if err := shakeHands(ctx, s, &r); err != nil {
		return r.With(troubleOf(err), err)
	}
	return r
}

// sslRequest is the first message of a PostgreSQL client that wants TLS.
const sslRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"

var errNoTLS = errors.New("it does not offer TLS")

func shakeHands(ctx context.Context, s server.Server, r *server.Reach) error {
	conn, err := connect(ctx, r.Address, r)
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	answer := make([]byte, 1)
	if _, err := io.WriteString(conn, sslRequest); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if answer[0] != 'S' {
		return errNoTLS
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM([]byte(s.CA)) // it is often the customers', too
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: s.PublicHost, MinVersion: tls.VersionTLS12})
	err = secure.HandshakeContext(ctx)
	note(r, certificates(secure, err))
	return err
}

// troubleOf tells the errors of a look apart.
func troubleOf(err error) server.Trouble {
	var (
		name    *net.DNSError
		network net.Error
		record  tls.RecordHeaderError
		ca      x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		other   errNoAgent
	)
	switch {
	case errors.Is(err, errWrongSecret):
		return server.WrongSecret
	case errors.As(err, &other):
		return server.NoAgent
	case errors.Is(err, errNoTLS), errors.As(err, &record):
		return server.NoTLS
	case errors.As(err, &ca):
		return server.UnknownCA
	case errors.As(err, &host):
		return server.OtherName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return server.OutOfDate
	case errors.As(err, &name) && name.IsNotFound:
		return server.NoSuchHost
	case errors.Is(err, syscall.ECONNREFUSED):
		return server.Refused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout(),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return server.Silent
	}
	return server.Broken
}
