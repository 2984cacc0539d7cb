package peer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// upgrade names what a connection becomes that carries changes.
const upgrade = "pgherd-changes"

const changesRoute = "GET /v1/peers/{operation}/changes"

func changesPath(op id.OperationID) string { return "/v1/peers/" + string(op) + "/changes" }

// Changes are what peers may follow.
type Changes struct {
	// Of finds it for an operation. ReasonNotFound: nothing is followed.
	Of func(ctx context.Context, op id.OperationID) (Followed, error)
	// Dial logs in to PostgreSQL.
	Dial func(ctx context.Context, user, password, database string, parameters map[string]string) (*pgconn.PgConn, error)
}

// changes makes of a request a connection that carries changes, until either side ends it, or the admission.
func (a *Admissions) changes(ctx context.Context, v visit, w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Upgrade") != upgrade {
		return command.Refuse(command.ReasonInvalid, "changes are carried by a connection that is upgraded")
	}
	of, err := a.Changes.Of(ctx, v.op)
	if err != nil {
		return err
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(startTime)) // supported by every connection of ours
	const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"
	if _, err = io.WriteString(conn, switching); err == nil {
		err = a.follow(ctx, conn, buffered.Reader, of)
	}
	a.log.Info("a peer follows no more", zap.String("operationId", string(v.op)), zap.Error(err))
	return nil
}

// follow logs the peer in, and has pass what may.
func (a *Admissions) follow(ctx context.Context, conn net.Conn, r *bufio.Reader, of Followed) error {
	f := &filter{of: of}
	m, err := readStartUp(conn, r)
	if err != nil {
		return err
	}
	parameters, err := f.startUp(m)
	if err != nil {
		tell(conn, stateRefused, err.Error())
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	session, err := a.Changes.Dial(limited, of.Login, of.Password, of.Database, parameters)
	if err != nil {
		tell(conn, stateAway, "PostgreSQL of the database's server does not let the subscription in: "+said(err))
		return err
	}
	there, err := session.Hijack()
	if err != nil {
		return err
	}
	defer there.Conn.Close()
	defer context.AfterFunc(ctx, func() { _ = there.Conn.Close() })()
	if err := welcome(conn, there); err != nil {
		return err
	}
	return f.carry(conn, r, there.Conn)
}

// said is what PostgreSQL has said, which has no secret; of another error, that there was one.
func said(err error) string {
	var no *pgconn.PgError
	if errors.As(err, &no) {
		return no.Message
	}
	return "its agent's log says why"
}

// welcome tells the peer what PostgreSQL has said.
func welcome(conn net.Conn, there *pgconn.HijackedConn) error {
	said := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}}
	for name, value := range there.ParameterStatuses {
		said = append(said, &pgproto3.ParameterStatus{Name: name, Value: value})
	}
	return say(conn, append(said, &pgproto3.ReadyForQuery{TxStatus: there.TxStatus})...)
}

// carry has pass what the peer says, message by message, and everything that PostgreSQL answers.
func (f *filter) carry(conn net.Conn, r *bufio.Reader, there net.Conn) error {
	_ = conn.SetDeadline(time.Time{}) // each piece has its own
	_ = there.SetDeadline(time.Time{})
	var refusing atomic.Bool
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_ = carry(conn, there, there) // what it failed of is said by the other way, or is the end of the connection
		if !refusing.Load() {
			_ = conn.Close() // nobody answers any more
		}
	}()
	refused, err := f.pass(conn, r, there)
	refusing.Store(refused)
	_ = there.Close()
	<-answered
	if refused {
		tell(conn, stateRefused, err.Error())
	}
	return err
}

// pass reads what the peer says. refused: it was not passed on.
func (f *filter) pass(conn net.Conn, r io.Reader, there net.Conn) (refused bool, err error) {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silentTime))
		kind, body, err := readMessage(r)
		if err == nil {
			err = f.message(kind, body)
		}
		switch {
		case err == errMessage || err == errStatement: //nolint:errorlint // they are made here
			return true, err
		case err != nil:
			return false, err
		}
		_ = there.SetWriteDeadline(time.Now().Add(takingTime))
		if err := writeMessage(there, kind, body); err != nil || kind == typeTerminate {
			return false, err
		}
	}
}
