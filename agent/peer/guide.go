package peer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// mostComing bounds those that have not shown a password.
const mostComing = 16

// accept takes what comes to the port until that is closed.
func (l *Lines) accept(from net.Listener) {
	coming := make(chan struct{}, mostComing)
	for {
		conn, err := from.Accept()
		if err != nil {
			if !isTemporary(err) {
				return
			}
			time.Sleep(firstPause)
			continue
		}
		select {
		case coming <- struct{}{}:
			go l.guide(conn, func() { <-coming })
		default:
			_ = conn.Close()
		}
	}
}

func isTemporary(err error) bool {
	closed, is := err.(*net.OpError) //nolint:errorlint // Accept returns it
	return is && closed.Temporary()  // too many open files pass
}

// guide carries one connection to the peer of its line. admitted is called once it has shown the password, or has gone.
func (l *Lines) guide(conn net.Conn, admitted func()) {
	defer conn.Close()
	op, of, m := l.admit(conn)
	admitted()
	if of == nil {
		return
	}
	leave, err := l.enter(of)
	if err != nil {
		tell(conn, stateCrowded, err.Error())
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(of.ended)
	defer cancel()
	far, r, err := reach(ctx, of.peer, op)
	if l.fails(op, of, err); err != nil {
		tell(conn, stateAway, err.Error())
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { _, _ = conn.Close(), far.Close() })()
	m.Parameters["user"] = "peer"
	text, err := m.Encode(nil)
	if err == nil {
		_, err = far.Write(text)
	}
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{}) // each piece has its own
	_ = far.SetDeadline(time.Time{})
	go func() {
		_ = carry(far, conn, conn)
		_ = far.Close()
	}()
	_ = carry(conn, far, r)
}

// admit asks who comes for the password of the line. Whoever has none, or another one, hears the same.
func (l *Lines) admit(conn net.Conn) (op id.OperationID, of *line, m *pgproto3.StartupMessage) {
	_ = conn.SetDeadline(time.Now().Add(startTime)) // supported by every connection of ours
	m, err := readStartUp(conn, conn)
	if err != nil || say(conn, &pgproto3.AuthenticationCleartextPassword{}) != nil {
		return "", nil, nil
	}
	kind, body, err := readMessage(conn)
	if err != nil || kind != 'p' {
		return "", nil, nil
	}
	op, of = l.find(m.Parameters["user"])
	shown, wanted := sha256.Sum256(body), [sha256.Size]byte{}
	if of != nil {
		wanted = sha256.Sum256([]byte(of.password + "\x00"))
	}
	if subtle.ConstantTimeCompare(shown[:], wanted[:]) != 1 || m.Parameters["database"] != of.db {
		tell(conn, statePassword, "this password opens nothing here")
		return "", nil, nil
	}
	return op, of, m
}

// reach has a connection to a peer become one that carries changes, within a time. Its deadline is that time's.
func reach(ctx context.Context, p command.Peer, op id.OperationID) (net.Conn, io.Reader, error) {
	req, err := request(ctx, p, changesPath(op))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", upgrade)
	conn, err := dial(ctx, p, addressOf(req.URL))
	if err != nil {
		return nil, nil, unreached(err)
	}
	_ = conn.SetDeadline(time.Now().Add(startTime))
	head := &io.LimitedReader{R: conn, N: mostHeader}
	r := bufio.NewReader(head)
	err = req.Write(conn)
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(r, req) //nolint:bodyclose // it is conn, which is closed or handed on
	}
	switch {
	case err != nil:
		err = &AwayError{Cause: err}
	case resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != upgrade:
		err = refused(resp)
	}
	if err != nil {
		_ = conn.Close() // it carries nothing
		return nil, nil, err
	}
	head.N = math.MaxInt64
	return conn, r, nil
}

func addressOf(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return u.Host
}
