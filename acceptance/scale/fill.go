package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// rows are what a world is filled with, apart from its history.
type rows struct {
	box       *secretbox.Box
	random    *rand.Rand
	now       time.Time
	accounts  []id.AccountID
	servers   []id.ServerID
	databases []row
}

// row is a database, with its place.
type row struct {
	id      id.DatabaseID
	name    string
	account id.AccountID
	server  id.ServerID
}

const (
	backupsOfOne = 7
	// ofOwner is the share of all databases that one account has.
	ofOwner = 10
	// previews are every so many.
	previewEvery = 10
	// emptyBytes is what the agents of the fleet say that a database has.
	emptyBytes = 7_500_000
)

// password is that of every login: one verifier then proves all, and cheaply.
const password = "a-password-of-the-measurement"

var verifier = credential.Verifier(password, [16]byte{}, 1)

func newID[T ~string](r *rand.Rand) T {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return id.FromBytes[T](b)
}

// fill makes accounts, servers with their agents, databases with all that belongs to one, and their history.
func (w *world) fill(ctx context.Context) (err error) {
	w.rows = rows{random: rand.New(rand.NewPCG(1, 2)), now: time.Now().UTC().Truncate(time.Second)}
	if w.rows.box, err = secretbox.Load(w.stack.KeyringFile()); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		w.fillAccounts, w.fillServers, w.fillDatabases, w.fillBackups, w.fillPreviews, w.fillHistory,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	_, err = w.meta.ExecContext(ctx, "VACUUM (ANALYZE)")
	return err
}

// put copies n rows into a table.
func (w *world) put(ctx context.Context, table, columns string, n int, row func(i int) ([]any, error)) (err error) {
	tx, err := w.meta.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", table, err), tx.Rollback())
		}
	}()
	into, err := tx.PrepareContext(ctx, "COPY "+table+" ("+strings.Join(strings.Fields(columns), ", ")+") FROM STDIN")
	if err != nil {
		return err
	}
	for i := range n {
		values, err := row(i)
		if err == nil {
			_, err = into.ExecContext(ctx, values...)
		}
		if err != nil {
			return errors.Join(err, into.Close())
		}
	}
	if _, err := into.ExecContext(ctx); err != nil {
		return errors.Join(err, into.Close())
	}
	if err := into.Close(); err != nil {
		return err
	}
	return tx.Commit()
}

func (w *world) fillAccounts(ctx context.Context) error {
	r := &w.rows
	users := make([]id.UserID, w.accounts-1)
	r.accounts = []id.AccountID{id.AccountID(w.owner.ID)}
	err := w.put(ctx, "users", "id email name created_at", len(users), func(i int) ([]any, error) {
		users[i] = newID[id.UserID](r.random)
		return []any{users[i], fmt.Sprintf("user%d@example.com", i), "User", r.now}, nil
	})
	if err != nil {
		return err
	}
	return w.put(ctx, "accounts", "id owner_id plan created_at max_databases", len(users), func(i int) ([]any, error) {
		r.accounts = append(r.accounts, newID[id.AccountID](r.random))
		return []any{r.accounts[i+1], users[i], "business", r.now, w.databases}, nil
	})
}

func (w *world) fillServers(ctx context.Context) error {
	r := &w.rows
	ca, err := w.fleet.authority()
	if err != nil {
		return err
	}
	const columns = "id name installation agent_url sealed_secret sealed_archive_key ca public_host public_port capacity enabled " +
		"created_at postgres_version"
	return w.put(ctx, "servers", columns, w.servers, func(i int) ([]any, error) {
		s := server.Server{ID: newID[id.ServerID](r.random)}
		r.servers = append(r.servers, s.ID)
		url, err := w.fleet.start(s.ID)
		if err != nil {
			return nil, err
		}
		secret, err := r.box.Seal([]byte("a-secret-of-the-measurement-7261"), s.SecretContext())
		if err != nil {
			return nil, err
		}
		key, err := r.box.Seal([]byte("an-archive-key-of-the-measurement"), s.ArchiveContext())
		return []any{
			s.ID, "paper-" + strconv.Itoa(i), string(s.ID), url, secret, key, ca, "localhost", 6432, 10 * w.databases, true, r.now, 16,
		}, err
	})
}

func (w *world) fillDatabases(ctx context.Context) error {
	r := &w.rows
	const columns = "id account_id server_id name display_name role_model environment status created_at connection_cap size_bytes " +
		"sized_at schedule next_backup_at next_reading_at access_generation allowlist_generation allowlist_applied"
	err := w.put(ctx, "databases", columns, w.databases, func(i int) ([]any, error) {
		one := row{
			id: newID[id.DatabaseID](r.random), name: "shop-" + strconv.Itoa(i), account: r.accounts[0],
			server: r.servers[i%len(r.servers)],
		}
		if i%ofOwner != 0 {
			one.account = r.accounts[i%len(r.accounts)]
		}
		r.databases = append(r.databases, one)
		return []any{
			one.id, one.account, one.server, one.name, "The shop of customer " + strconv.Itoa(i), database.Managed, "production",
			database.Active, r.now.Add(-100 * 24 * time.Hour), 20, emptyBytes, r.now, database.Daily,
			backup.NextDaily(one.id, r.now), r.now.AddDate(0, 1, 0), 1, 1, 1,
		}, w.fleet.add(ctx, one)
	})
	if err != nil {
		return err
	}
	logins := database.Managed.Logins()
	err = w.put(ctx, "database_logins", "database_id login username generation verifier sealed", len(logins)*w.databases,
		func(i int) ([]any, error) {
			one, login := r.databases[i/len(logins)], logins[i%len(logins)]
			secret := ports.LoginSecret{DatabaseID: one.id, Login: login, Generation: 1}
			sealed, err := r.box.Seal([]byte(password), secret.Context())
			return []any{one.id, login, database.RoleNames(one.id, one.name).Of(login), 1, verifier, sealed}, err
		})
	if err != nil {
		return err
	}
	err = w.put(ctx, "backup_keys", "database_id sealed", w.databases, func(i int) ([]any, error) {
		key := backup.Key{DatabaseID: r.databases[i].id}
		sealed, err := r.box.Seal(make([]byte, backup.KeyBytes), key.SecretContext())
		return []any{key.DatabaseID, sealed}, err
	})
	if err != nil {
		return err
	}
	return w.put(ctx, "allowlist_entries", "id database_id cidr description created_at", w.databases, func(i int) ([]any, error) {
		return []any{newID[id.AllowlistEntryID](r.random), r.databases[i].id, "192.0.2.0/24", "the office", r.now}, nil
	})
}

// add has a server of the fleet have a database.
func (f *fleet) add(ctx context.Context, one row) error {
	agent, err := f.fakes.Agent(server.Server{ID: one.server})
	if err != nil {
		return err
	}
	made := command.EnsureDatabase{
		DatabaseID: one.id, AccountID: one.account, Name: one.name, RoleModel: database.Managed, ConnectionCap: 20,
		BackupKey: make([]byte, backup.KeyBytes),
	}
	for _, login := range database.Managed.Logins() {
		made.Logins = append(made.Logins, command.Login{
			Login: login, Username: database.RoleNames(one.id, one.name).Of(login), Verifier: verifier, Password: password,
		})
	}
	for _, c := range []command.Command{
		made, command.SetAccess{DatabaseID: one.id, Open: true, Generation: 1},
		command.SetAllowlist{DatabaseID: one.id, Generation: 1},
	} {
		if _, err := agent.Do(ctx, ports.Fence{}, c); err != nil {
			return err
		}
	}
	if !f.fakes.Server(one.server).SetSize(one.name, emptyBytes) {
		return fmt.Errorf("the fleet has no database %s", one.name)
	}
	return nil
}

func (w *world) fillBackups(ctx context.Context) error {
	const columns = "database_id filename operation_id trigger format size_bytes checksum_sha256 created_at verified_at " +
		"expires_at role_manifest"
	r := &w.rows
	return w.put(ctx, "backups", columns, backupsOfOne*w.databases, func(i int) ([]any, error) {
		of := r.databases[i/backupsOfOne].id
		at := backup.NextDaily(of, r.now).AddDate(0, 0, -1-i%backupsOfOne)
		return []any{
			of, at.Format("20060102_150405") + ".sql.gz", newID[id.OperationID](r.random), "scheduled", "sql.gz", 1_000_000,
			strings.Repeat("ab", 32), at, at, at.AddDate(0, 1, 0), true,
		}, nil
	})
}

// fillPreviews makes some databases previews whose leases last.
func (w *world) fillPreviews(ctx context.Context) error {
	r := &w.rows
	spaces := make([]id.NamespaceID, len(r.accounts))
	of := map[id.AccountID]id.NamespaceID{}
	err := w.put(ctx, "ci_namespaces", "id account_id name created_at", len(spaces), func(i int) ([]any, error) {
		spaces[i] = newID[id.NamespaceID](r.random)
		of[r.accounts[i]] = spaces[i]
		return []any{spaces[i], r.accounts[i], "main", r.now}, nil
	})
	if err != nil {
		return err
	}
	const columns = "database_id namespace_id ref use ttl_hours scheduled_backup lease_status lease_generation expires_at failures"
	return w.put(ctx, "previews", columns, w.databases/previewEvery, func(i int) ([]any, error) {
		one := r.databases[i*previewEvery+1]
		return []any{
			one.id, of[one.account], "pull/" + strconv.Itoa(i), 1, 72, "none", "active", 1, r.now.Add(71 * time.Hour), 0,
		}, nil
	})
}

// fillHistory makes ended operations, one a day and database, and as many entries of the log. The oldest come first, as they do.
func (w *world) fillHistory(ctx context.Context) error {
	each := w.history / w.databases
	for _, statement := range []string{
		`INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress, input, result, error_code,
			error_text, actor, request_id, created_at, finished_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
		SELECT gen_random_uuid(), d.account_id, d.id, d.server_id, 'backup', 'succeeded', 'done', 100, '{}', '{}', '', '', 'schedule',
			'', t.at, t.at + interval '1 minute', false, '', 1, 1, t.at
		FROM (SELECT now() - k * interval '1 day' AS at FROM generate_series(%[1]d, 1, -1) k) t CROSS JOIN databases d`,
		`INSERT INTO audit_entries (id, at, account_id, database_id, actor, action, details)
		SELECT gen_random_uuid(), t.at, d.account_id, d.id, 'schedule', 'backup.requested', '{"trigger": "scheduled"}'
		FROM (SELECT now() - k * interval '1 day' AS at FROM generate_series(%[1]d, 1, -1) k) t CROSS JOIN databases d`,
	} {
		if _, err := w.meta.ExecContext(ctx, fmt.Sprintf(statement, each)); err != nil {
			return err
		}
	}
	return nil
}

// count asks the metadata for a number.
func (w *world) count(ctx context.Context, query string, args ...any) (n int, err error) {
	var found sql.NullInt64
	err = w.meta.QueryRowContext(ctx, query, args...).Scan(&found)
	return int(found.Int64), err
}
