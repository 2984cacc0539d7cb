package pgdump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5/pgproto3"
)

// door is a socket at which pg_dump finds a session that is open already, with what is locked there. pg_dump cannot be told to
// lock anything before it takes its snapshot. It needs no password for that either.
type door struct {
	folder   string
	listener *net.UnixListener
}

// doorPort is a part of the socket's name.
const doorPort = 5432

// openDoor makes the socket in a folder that only the system user has who runs pg_dump; nil: the agent's own.
func openDoor(as *syscall.Credential) (*door, error) {
	folder, err := os.MkdirTemp("", "pgherd-dump-")
	if err != nil {
		return nil, fmt.Errorf("socket for pg_dump: %w", err)
	}
	d := &door{folder: folder}
	path := filepath.Join(folder, ".s.PGSQL."+strconv.Itoa(doorPort))
	if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err == nil && as != nil {
		err = errors.Join(os.Chown(path, int(as.Uid), int(as.Gid)), os.Chown(folder, int(as.Uid), int(as.Gid)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket for pg_dump: %w", err), d.Close())
	}
	return d, nil
}

// Close removes the socket.
func (d *door) Close() error {
	var err error
	if d.listener != nil {
		err = d.listener.Close()
	}
	return errors.Join(err, os.RemoveAll(d.folder))
}

// serve lets the first who comes use the session, until one side ends. That ends the session.
func (d *door) serve(ctx context.Context, session *Session) error {
	defer session.Conn.Close()
	stop := context.AfterFunc(ctx, func() {
		_, _ = d.listener.Close(), session.Conn.Close()
	})
	defer stop()
	client, err := d.listener.AcceptUnix()
	if err != nil {
		return fmt.Errorf("wait for pg_dump: %w", err)
	}
	defer client.Close()   //nolint:errcheck // both sides have ended
	_ = d.listener.Close() // nobody else comes in
	if err := greet(client, session); err != nil {
		return fmt.Errorf("greet pg_dump: %w", err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, session.Conn)
		_ = client.CloseWrite() // pg_dump notices that the session has ended, and says so
	}()
	_, _ = io.Copy(session.Conn, client)
	_ = session.Conn.Close()
	<-answered
	return nil
}

// greet answers a start-up message with what the server has told the session. What the message asks for, the session has.
func greet(client net.Conn, session *Session) error {
	to := pgproto3.NewBackend(client, client)
	if _, err := to.ReceiveStartupMessage(); err != nil {
		return err
	}
	to.Send(&pgproto3.AuthenticationOk{})
	for name, value := range session.ParameterStatuses {
		to.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	to.Send(&pgproto3.BackendKeyData{ProcessID: session.PID, SecretKey: session.SecretKey})
	to.Send(&pgproto3.ReadyForQuery{TxStatus: session.TxStatus})
	return to.Flush()
}
