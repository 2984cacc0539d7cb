package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/operation"
)

// begun is a backup that was begun and not finished.
type begun struct {
	key       string
	operation wire.Operation
}

// killDuringBackup begins a backup of a database, and kills the agent and both hosts while the agent works on it.
func (u *upgrade) killDuringBackup(ctx context.Context) (b begun, err error) {
	account, err := u.NewAccount(ctx, "upgrade", "business", 0)
	if err != nil {
		return b, err
	}
	b.key = account.Key
	client, err := stack.Client(u.api.URL, b.key, nil)
	if err != nil {
		return b, err
	}
	made, err := client.Databases.Create(ctx, wire.CreateDatabase{Name: "shop", DisplayName: "Shop"})
	if err != nil {
		return b, err
	}
	owner, err := u.customer(made.ConnectionString)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, owner.Close()) }()
	if _, err := owner.ExecContext(ctx, "CREATE TABLE item AS SELECT n FROM generate_series(1, 10000) n"); err != nil {
		return b, err
	}
	held, err := owner.BeginTx(ctx, nil)
	if err != nil {
		return b, err
	}
	defer func() { _ = held.Rollback() }() // its session may be gone
	if _, err := held.ExecContext(ctx, "LOCK TABLE item IN ACCESS EXCLUSIVE MODE"); err != nil {
		return b, err
	}
	started, err := client.Backups.Start(ctx, made.ID)
	if err != nil {
		return b, err
	}
	b.operation = started.Operation
	if err := u.awaitDump(ctx); err != nil {
		return b, err
	}
	say("killing %s during a backup", u.from)
	return b, errors.Join(u.FirstAgent().Kill(), u.batch.Kill(), u.api.Kill())
}

// customer connects through the pooler, as the connection string says.
func (u *upgrade) customer(connectionString string) (*sql.DB, error) {
	at, err := url.Parse(connectionString)
	if err != nil {
		return nil, err
	}
	query := at.Query()
	query.Set("sslrootcert", u.CAFile())
	at.RawQuery = query.Encode()
	return sql.Open("postgres", at.String())
}

// awaitDump waits until the backup waits for the lock on the table, as nobody else on the server does.
func (u *upgrade) awaitDump(ctx context.Context) (err error) {
	server, err := sql.Open("postgres", u.Server.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	for began := time.Now(); ; time.Sleep(stack.Pause(time.Since(began))) {
		var waiting int
		if err := server.QueryRowContext(ctx, query).Scan(&waiting); err != nil || waiting > 0 {
			return err
		}
	}
}

// check waits until the backup has succeeded, and compares the file with its record.
func (b begun) check(ctx context.Context, api *stack.Host) (err error) {
	client, err := stack.Client(api.URL, b.key, nil)
	if err != nil {
		return err
	}
	ended, err := client.Operations.Await(ctx, b.operation.ID, time.Second)
	if err != nil {
		return err
	}
	if ended.Status != operation.Succeeded {
		return fmt.Errorf("the backup is %s: %+v", ended.Status, ended.Error)
	}
	result, err := operation.Decode[operation.BackupResult](*ended.Result)
	if err != nil {
		return err
	}
	file, err := client.Backups.Download(ctx, b.operation.DatabaseID, backup.Filename(result.Filename))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	got, err := sum(file)
	if err == nil && got != result.ChecksumSHA256 {
		err = fmt.Errorf("the file has the SHA-256 %s, and its record %s", got, result.ChecksumSHA256)
	}
	return err
}
