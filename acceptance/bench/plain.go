package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
)

// plainHandler is the argument that makes this program the baseline of part (b).
const plainHandler = "plain-handler"

// lookup is a statement as the API host sent it, with the arguments of one request.
type lookup struct {
	SQL       string
	Arguments []*string
}

// plainTask is what the baseline is told on its standard input.
type plainTask struct {
	MetadataURL string
	Connections int
	Lookups     []lookup
}

// servePlain is the least that can answer GET /databases/{id}: net/http and lib/pq, the API host's own two reads, prepared, and
// the record as JSON. It checks no key, has no limits, and logs, counts and traces nothing. It prints its address and ends when
// its standard input does.
func servePlain(in io.Reader, out io.Writer) error {
	var task plainTask
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&task); err != nil {
		return err
	}
	db, err := sql.Open("postgres", task.MetadataURL)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(task.Connections)
	db.SetMaxIdleConns(task.Connections)
	handler := &plain{task: task}
	for _, l := range task.Lookups {
		statement, err := db.PrepareContext(context.Background(), l.SQL)
		if err != nil {
			return err
		}
		handler.statements = append(handler.statements, statement)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/databases/{id}", handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), in)) // until the parent has gone
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type plain struct {
	task       plainTask
	statements []*sql.Stmt
}

func (p *plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var record looked
	for i := range p.statements {
		if err := p.look(r.Context(), i, &record); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if string(record.ID) != r.PathValue("id") {
		http.NotFound(w, r)
		return
	}
	record.Database.Database, record.Username = record.Name, record.Name
	record.Storage.QuotaBytes = account.DatabaseBytes(record.plan, record.bytes)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(record.Database) // a client that has left is no fault
}

// looked is a record, with what its quota follows from.
type looked struct {
	wire.Database
	plan  account.Plan
	bytes *int64
}

// look runs one statement, and takes of the last one's row what the record needs.
func (p *plain) look(ctx context.Context, i int, record *looked) error {
	rows, err := p.statements[i].QueryContext(ctx, p.task.Lookups[i].arguments()...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if !rows.Next() {
		return errors.Join(errors.New("no row"), rows.Err())
	}
	values := make([]any, len(columns))
	for n, column := range columns {
		values[n] = new(sql.RawBytes)
		if i == len(p.statements)-1 {
			values[n] = field(record, column)
		}
	}
	return rows.Scan(values...)
}

// field is where a column of the database's row goes.
func field(r *looked, column string) any {
	switch column {
	case "id":
		return &r.ID
	case "name":
		return &r.Name
	case "display_name":
		return &r.DisplayName
	case "host":
		return &r.Host
	case "port":
		return &r.Port
	case "status":
		return &r.Status
	case "size_bytes":
		return &r.SizeBytes
	case "created_at":
		return &r.CreatedAt
	case "environment":
		return &r.Environment
	case "storage_status":
		return &r.Storage.Status
	case "account_plan":
		return &r.plan
	case "account_database_bytes":
		return &r.bytes
	default:
		return new(sql.RawBytes)
	}
}

func (l lookup) arguments() []any {
	all := make([]any, len(l.Arguments))
	for i, a := range l.Arguments {
		switch {
		case a != nil && strings.HasPrefix(*a, `\x`):
			all[i] = unhex(*a)
		case a != nil:
			all[i] = *a
		}
	}
	return all
}

// unhex reads the server's form of bytes: lib/pq would send the text itself as bytes.
func unhex(text string) []byte {
	raw, err := hex.DecodeString(text[2:])
	if err != nil {
		return []byte(text)
	}
	return raw
}
