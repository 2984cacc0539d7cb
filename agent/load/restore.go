// Package load streams dumps into databases.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/upload"
)

// Restorer streams a dump into a database, one statement per message, and stops at the first error. It is the only way in which
// the agent runs a customer's SQL, and its connection is always that of a login made for one restore.
type Restorer struct {
	Rows       map[string]int64 // of the tables, as far as they are known before they are restored
	Copied     map[string]int64 // of those, as PostgreSQL has counted them while they were restored; nil: it is not kept
	Conn       *pgconn.PgConn
	Settings   map[string]bool                           // that the server knows
	Extensions map[string]string                         // versions to install; others get the server's default
	Refuse     func(sql []byte) string                   // why a statement must not be executed; nil: all may be
	Skip       func(sql []byte) (note string, skip bool) // whether it is left out; nil: none is
	Ending     *upload.Ending                            // what is told of statements and comments; nil: nobody
	Notes      []string                                  // of what was left out, each once
	Dumped     string                                    // the version of the server that the dump is of, as it says
	object     string                                    // what the dump says that it is about
	number     int64                                     // of the statement
}

// StatementError says which statement of a dump could not be restored. Its text may be shown to the customer.
type StatementError struct {
	Number    int64 // of the statement, from 1
	Line      int64
	Object    string // "FUNCTION public.f", as the dump's comments name it; may be empty
	Statement string // shortened
	SQLState  string // empty where the agent itself refused it
	Message   string
}

func (e *StatementError) Error() string {
	text := e.Where() + " failed: " + e.Message
	if e.SQLState != "" {
		text += " (SQLSTATE " + e.SQLState + ")"
	}
	return text
}

// Where says which statement it is.
func (e *StatementError) Where() string {
	object := ""
	if e.Object != "" {
		object = ", " + e.Object
	}
	return fmt.Sprintf("statement %d on line %d%s: %q", e.Number, e.Line, object, e.Statement)
}

// InterruptedError says in which statement a restore broke off, for a reason that says nothing about the dump.
type InterruptedError struct {
	At  *StatementError
	err error
}

func (e *InterruptedError) Error() string { return "restore: " + e.err.Error() }
func (e *InterruptedError) Unwrap() error { return e.err }

// ForCustomer says where it was, in fixed words about why.
func (e *InterruptedError) ForCustomer() string {
	why := "PostgreSQL broke it off"
	var refused *pgconn.PgError
	if errors.As(e.err, &refused) {
		switch refused.Code {
		case pg.OutOfMemory:
			why = "PostgreSQL had no memory, or no lock, left for it"
		case "57P01":
			why = "its session was ended, as one is that holds too many locks"
		}
	}
	if e.At == nil {
		return "the restore was interrupted: " + why
	}
	return e.At.Where() + " was interrupted: " + why
}

// Run restores the whole dump. A *StatementError or a *dumpsql.SyntaxError means that the dump is at fault; after any other
// error, that is open.
func (r *Restorer) Run(ctx context.Context, dump *dumpsql.Reader) error {
	for {
		item, err := dump.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unread(err, r.number+1)
		}
		if object, _, ok := item.About(); ok {
			r.object = Shorten(object, mostNamed)
		}
		skip := r.skips(item)
		r.note(item, skip)
		switch item.Kind {
		case dumpsql.Statement:
			r.number++
			err = r.execute(ctx, item, skip)
		case dumpsql.CopyStart:
			r.number++
			err = r.copy(ctx, dump, item)
		case dumpsql.CopyData, dumpsql.CopyEnd, dumpsql.Meta, dumpsql.Trailer: // nothing for the server
		}
		if err != nil {
			return err
		}
	}
}

func (r *Restorer) note(item dumpsql.Item, skip bool) {
	if r.Ending == nil {
		return
	}
	for text := range item.Comments() {
		r.Ending.Comment(text)
		if version, ok := strings.CutPrefix(text, "-- Dumped from database version "); ok && r.Dumped == "" {
			r.Dumped = Shorten(version, mostNamed)
		}
	}
	if item.Kind == dumpsql.Statement || item.Kind == dumpsql.CopyStart {
		r.Ending.Statement(!skip && dumpsql.Makes(item.SQL()))
	}
}

// unread says at which statement a dump cannot be read, where that is the dump's fault.
func unread(err error, statement int64) error {
	if errors.As(err, new(*dumpsql.SyntaxError)) {
		return fmt.Errorf("statement %d, %w", statement, err)
	}
	return err
}

// execute runs one statement. The extended protocol accepts exactly one, so the reader and the server cannot disagree about
// where statements end. One that is left out must be allowed too.
func (r *Restorer) execute(ctx context.Context, item dumpsql.Item, skip bool) error {
	if err := r.allow(item); err != nil {
		return err
	}
	if skip {
		return nil
	}
	sql := string(item.SQL())
	if name, ok := dumpsql.Setting(item.SQL()); ok && !r.Settings[name] {
		return nil
	}
	if dumpsql.StartsCopy(item.SQL()) {
		return r.refusal(item, "only COPY ... FROM stdin is allowed in a dump")
	}
	for _, one := range understood(r.versioned(sql), r.Conn.ParameterStatus("server_version")) {
		if _, err := r.Conn.ExecParams(ctx, one, nil, nil, nil, nil).Close(); err != nil {
			return r.Failure(item, err)
		}
	}
	return r.stillSafe(item)
}

// skips reports whether a statement is left out, and keeps what is to be noted of that.
func (r *Restorer) skips(item dumpsql.Item) bool {
	if r.Skip == nil || item.Kind != dumpsql.Statement {
		return false
	}
	note, skip := r.Skip(item.SQL())
	if skip && note != "" && len(r.Notes) < mostNotes && !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
	return skip
}

func (r *Restorer) allow(item dumpsql.Item) error {
	if r.Refuse == nil {
		return nil
	}
	if why := r.Refuse(item.SQL()); why != "" {
		return r.refusal(item, why)
	}
	return nil
}

// stillSafe refuses a dump that changes how the server reads strings: from then on, the reader would split it differently than
// the server.
func (r *Restorer) stillSafe(item dumpsql.Item) error {
	if r.Conn.ParameterStatus("standard_conforming_strings") == "off" {
		return r.refusal(item, "standard_conforming_strings must stay on")
	}
	if encoding := r.Conn.ParameterStatus("client_encoding"); slices.Contains(unsafeEncodings, encoding) {
		return r.refusal(item, "client_encoding "+encoding+" is not allowed in a dump")
	}
	return nil
}

// unsafeEncodings have multibyte characters in which a byte can look like a quote or a backslash.
var unsafeEncodings = []string{"SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004"}

// versioned adds the version to CREATE EXTENSION, which a dump leaves out.
func (r *Restorer) versioned(sql string) string {
	rest, ok := strings.CutPrefix(sql, "CREATE EXTENSION IF NOT EXISTS ")
	if !ok || len(r.Extensions) == 0 {
		return sql
	}
	name, _, _ := strings.Cut(rest, " ")
	version, ok := r.Extensions[dumpsql.Canonical(name)]
	if !ok || strings.Contains(strings.ToUpper(rest), " VERSION ") {
		return sql
	}
	return strings.TrimSuffix(sql, ";") + " VERSION " + dumpsql.QuoteIdentifier(version) + ";"
}

// copy streams the data that follows into the table.
func (r *Restorer) copy(ctx context.Context, dump *dumpsql.Reader, start dumpsql.Item) error {
	if err := r.allow(start); err != nil {
		return err
	}
	at := start
	at.Text = bytes.Clone(start.Text) // the reader goes on while it may still be needed
	sql, begun, err := r.frozen(ctx, string(at.SQL()))
	if err != nil {
		return r.Failure(at, err)
	}
	data := copyData{dump: dump}
	said, err := r.Conn.CopyFrom(ctx, &data, sql)
	whole, failed := data.leave()
	switch {
	case failed != nil:
		return unread(failed, r.number)
	case err != nil:
		return r.Failure(at, err)
	case !whole:
		return r.refusal(at, "the server took only a part of the data")
	}
	if begun {
		if _, err := r.Conn.Exec(ctx, "COMMIT").ReadAll(); err != nil {
			return r.Failure(at, err)
		}
	}
	table := dumpsql.Canonical(dumpsql.CopyTarget(at.SQL()))
	if _, known := r.Rows[table]; known && r.Copied != nil {
		r.Copied[table] += said.RowsAffected()
	}
	return nil
}

func (r *Restorer) refusal(item dumpsql.Item, why string) error {
	e := r.at(item)
	e.Message = Shorten(why, MostSaid)
	return e
}

func (r *Restorer) at(item dumpsql.Item) *StatementError {
	return &StatementError{Number: r.number, Line: item.Line, Object: r.object, Statement: shown(item.SQL())}
}

// mostShown is how much of a statement an error has.
const mostShown = 120

// shown is the beginning of a statement, without what its literals hold: that can be a password, and the error goes to everybody
// who sees the operation, to webhooks and to logs.
func shown(sql []byte) string {
	var b strings.Builder
	end := 0
	for at, text := range dumpsql.Tokens(sql) {
		if at > end {
			b.WriteByte(' ')
		}
		end = at + len(text)
		switch {
		case strings.HasSuffix(text, "'"):
			text = "'...'"
		case len(text) > 1 && text[0] == '$' && strings.HasSuffix(text, "$"):
			text = "$$...$$"
		}
		b.WriteString(text)
		if b.Len() > mostShown {
			break
		}
	}
	return Shorten(b.String(), mostShown)
}

const (
	// MostSaid bounds the bytes of an error's message, which may be of a customer's code: it is stored, sent and shown.
	MostSaid  = 2000
	mostNamed = 200 // bytes of what it is about
	mostNotes = 50
)

// Failure distinguishes an error of the statement from one of the server or the connection, which says nothing about the dump.
func (r *Restorer) Failure(item dumpsql.Item, err error) error {
	var e *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	failed := r.at(item)
	if errors.As(err, &long) {
		failed.Message = fmt.Sprintf("PostgreSQL answered with %d bytes at once, and %d are allowed",
			long.ActualBodyLen, long.MaxExpectedBodyLen)
		return failed
	}
	if !errors.As(err, &e) || Transient(e.Code) && e.Routine != raised {
		return &InterruptedError{failed, err}
	}
	failed.SQLState, failed.Message = e.Code, Shorten(e.Message, MostSaid)
	if e.TableName != "" && r.object == "" {
		failed.Object = Shorten(dumpsql.QuoteName(e.SchemaName, e.TableName), mostNamed) // code may name whatever it likes
	}
	return failed
}

// raised is where PostgreSQL says that an error came from which PL/pgSQL code has raised, with whatever SQLSTATE it liked. Each
// attempt would come to that again, and may take as long as it is allowed to.
const raised = "exec_stmt_raise"

// Transient reports whether a SQLSTATE says nothing about the statement: its class is connection, resources, operator
// intervention, system errors or internal errors.
func Transient(sqlState string) bool {
	return slices.Contains([]string{"08", "53", "57", "58", "XX"}, sqlState[:min(2, len(sqlState))])
}

// InTheWay reports whether a SQLSTATE says that somebody else was in the way: its class is the log-in, conflicts with others, or
// objects in use.
func InTheWay(sqlState string) bool {
	return slices.Contains([]string{"28", "40", "55"}, sqlState[:min(2, len(sqlState))])
}

// Shorten makes one line of a text, of about so many bytes at most.
func Shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
