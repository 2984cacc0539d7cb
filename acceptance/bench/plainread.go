package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
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
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// plainStatements are those of one request.
const plainStatements = 2

// plainHandler is the argument that makes this program the baseline of part (b).
const plainHandler = "plain-handler"

// plainTask is what the baseline is told on its standard input.
type plainTask struct {
	MetadataURL string
	Connections int
	File        string // what every backup is
}

// servePlain is GET /databases/{id} as somebody writes it in an afternoon who has only seen the tables: net/http and lib/pq, the
// SHA-256 of the key, and two SELECTs by primary key. It has no rates, no members, no selected keys and no maintenance, and
// logs, counts and traces nothing. It prints its address and ends when its standard input does.
func servePlain(in io.Reader, out io.Writer) error {
	var task plainTask
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&task); err != nil {
		return err
	}
	handler, err := newPlainRead(context.Background(), task)
	if err != nil {
		return err
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
	mux.HandleFunc("GET /api/v1/databases/{id}/backups/{filename}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, task.File)
	})
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

// plainRead answers with the record of a database of the key's account.
type plainRead struct{ key, database *sql.Stmt }

const (
	selectKey = `SELECT k.account_id, k.hash, k.revoked_at, a.plan, a.database_bytes
		FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.id = $1`
	selectDatabase = `SELECT d.account_id, d.name, d.display_name, d.status, d.size_bytes, d.created_at, d.environment,
			d.storage_status, d.schedule, s.public_host, s.public_port
		FROM databases d JOIN servers s ON s.id = d.server_id WHERE d.id = $1`
)

func newPlainRead(ctx context.Context, task plainTask) (p plainRead, err error) {
	db, err := sql.Open("postgres", task.MetadataURL)
	if err != nil {
		return p, err
	}
	db.SetMaxOpenConns(task.Connections)
	db.SetMaxIdleConns(task.Connections)
	if p.key, err = db.PrepareContext(ctx, selectKey); err == nil {
		p.database, err = db.PrepareContext(ctx, selectDatabase)
	}
	return p, err
}

// caller is what the handler knows of a key.
type caller struct {
	account, plan string
	bytes         *int64 // of a database, where the account has a quota of its own
}

var errNoKey = errors.New("no such key")

func (p plainRead) authenticate(r *http.Request) (c caller, err error) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.SplitN(key, "_", 3)
	if len(parts) != 3 {
		return c, errNoKey
	}
	var stored []byte
	var revoked *time.Time
	err = p.key.QueryRowContext(r.Context(), parts[1]).Scan(&c.account, &stored, &revoked, &c.plan, &c.bytes)
	if err != nil {
		return c, err
	}
	hash := sha256.Sum256([]byte(key))
	if revoked != nil || subtle.ConstantTimeCompare(hash[:], stored) != 1 {
		return c, errNoKey
	}
	return c, nil
}

// ServeHTTP implements http.Handler.
func (p plainRead) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := p.authenticate(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var owner string
	var environment database.Environment
	var d wire.Database
	err = p.database.QueryRowContext(r.Context(), r.PathValue("id")).Scan(&owner, &d.Name, &d.DisplayName, &d.Status, &d.SizeBytes,
		&d.CreatedAt, &environment, &d.Storage.Status, &d.ScheduledBackup, &d.Host, &d.Port)
	if err != nil || owner != c.account {
		http.NotFound(w, r)
		return
	}
	if environment != "" {
		d.Environment = &environment
	}
	d.ID, d.Database, d.Username = id.DatabaseID(r.PathValue("id")), d.Name, d.Name
	d.Storage.QuotaBytes = account.DatabaseBytes(account.Plan(c.plan), c.bytes)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d) // a client that has left is no fault
}
