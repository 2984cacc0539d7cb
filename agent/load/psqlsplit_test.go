package load_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/search"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// sent is a statement as a client sends it, with the data that follows it.
type sent struct{ SQL, Data string }

// listener is a server that takes whatever psql sends for right, and writes it down. A statement with startsData in it is a COPY
// whose data it asks for.
type listener struct {
	startsData func(sql string) bool
	list       []sent
}

// psqlSends is what psql makes of a text. Comments before a statement are not part of it.
func psqlSends(t *testing.T, text string, startsData func(sql string) bool) []sent {
	t.Helper()
	dir := check.Must(os.MkdirTemp("", "psql-"))(t) // a socket's path must be short
	defer os.RemoveAll(dir)
	socket := check.Must(net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432")))(t)
	defer socket.Close()
	l := listener{startsData: startsData}
	served := make(chan error, 1)
	go func() { served <- l.serve(socket) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tools := check.Must(toolchain.Find())(t)
	psql := exec.CommandContext(ctx, tools.Psql, "-X", "-q", "-h", dir, "-p", "5432", "-d", "any", "-U", "any")
	psql.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "PGCLIENTENCODING=UTF8"}
	psql.Stdin = strings.NewReader(text)
	out, err := psql.CombinedOutput()
	if err := errors.Join(err, socket.Close()); err != nil || len(out) > 0 {
		t.Fatalf("psql: %v %s", err, out)
	}
	check.NoError(t, <-served)
	return l.list
}

// serve takes one client.
func (l *listener) serve(socket net.Listener) error {
	conn, err := socket.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return err
	}
	server.Send(&pgproto3.AuthenticationOk{})
	for name, value := range map[string]string{
		"server_version": "16.14", "client_encoding": "UTF8", "standard_conforming_strings": "on",
	} {
		server.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	for {
		server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if err := server.Flush(); err != nil {
			return err
		}
		message, err := server.Receive()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.Terminate:
			return nil
		case *pgproto3.Query:
			if err := l.query(server, m.String); err != nil {
				return err
			}
		}
	}
}

func (l *listener) query(server *pgproto3.Backend, text string) error {
	one := sent{SQL: plain(withoutLead(text))}
	if one.SQL == "" {
		server.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if l.startsData(one.SQL) {
		server.Send(&pgproto3.CopyInResponse{})
		if err := server.Flush(); err != nil {
			return err
		}
		for done := false; !done; {
			message, err := server.Receive()
			if err != nil {
				return err
			}
			switch m := message.(type) {
			case *pgproto3.CopyData:
				one.Data += string(m.Data)
			case *pgproto3.CopyDone:
				done = true
			}
		}
	}
	one.Data = strings.TrimSuffix(strings.TrimSuffix(one.Data, "\\.\n"), "\\.\r\n")
	l.list = append(l.list, one)
	server.Send(&pgproto3.CommandComplete{CommandTag: []byte("DONE")})
	return nil
}

var lines = regexp.MustCompile("\n+")

// plain leaves out empty lines, which psql does not send, and what follows a COPY on its line.
func plain(sql string) string {
	return lines.ReplaceAllString(strings.TrimRight(sql, " \t\r\n"), "\n")
}

// withoutLead takes off white space and comments at the beginning.
func withoutLead(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\n\r\f\v")
		switch {
		case strings.HasPrefix(text, "--"):
			end := strings.IndexAny(text, "\n\r")
			if end < 0 {
				return ""
			}
			text = text[end:]
		case strings.HasPrefix(text, "/*"):
			text = withoutComment(text)
		default:
			return text
		}
	}
}

func withoutComment(text string) string {
	for depth, i := 0, 0; i < len(text)-1; i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return text[i+1:]
			}
		}
	}
	return text
}

// readerSends is what a restore by our reader sends.
func readerSends(t *testing.T, text string) (list []sent) {
	t.Helper()
	r := dumpsql.NewReader(strings.NewReader(text), dumpsql.Limits{})
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v, in %q", err, text)
		}
		switch item.Kind {
		case dumpsql.Statement, dumpsql.CopyStart:
			list = append(list, sent{SQL: plain(string(item.SQL()))})
		case dumpsql.CopyData:
			list[len(list)-1].Data += string(item.Text)
		case dumpsql.CopyEnd, dumpsql.Meta, dumpsql.Trailer:
		}
	}
}

// splitAlike fails the test where the reader makes other statements of a text than psql.
func splitAlike(t *testing.T, text string, startsData func(sql string) bool) {
	t.Helper()
	if diff := cmp.Diff(psqlSends(t, text, startsData), readerSends(t, text)); diff != "" {
		t.Errorf("of %q, psql (-) and the reader (+) make\n%s", text, diff)
	}
}

// Of any well-formed text, the reader makes the statements that psql makes of it. The corpus is in testdata;
// TestSearchSplitAsByPsql looks beyond it.
func FuzzSplitAsByPsql(f *testing.F) { f.Fuzz(splitAsByPsql) }

func TestSearchSplitAsByPsql(t *testing.T) { search.Beyond(t, splitAsByPsql) }

func splitAsByPsql(t *testing.T, input []byte) {
	splitAlike(t, soup(&tape{rest: input}), func(sql string) bool { return strings.Contains(sql, copied) })
}
