package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
)

// plainRoles makes and changes additional roles of one database with plain SQL and PgBouncer's console, as the same logins as the
// agent's, on the same servers. What counts as its time is what cannot be left out; each statement is sent after the other, over
// connections that are open already, and the log-ins go the same ways as the agent's, without TLS.
//
//   - create: a transaction that makes the role with its limit, its closed gate and CONNECT in the owner's name; a RELOAD of
//     PgBouncer; a transaction with its group, its verifier, LOGIN and the open gate; a log-in each way.
//   - rotate: the gate closed; SHOW CLIENTS and a KILL_CLIENT each until there is none; NOLOGIN; pg_terminate_backend until there
//     is no session; a transaction with the new verifier, LOGIN and the open gate; log-ins each way with the new password and the
//     old one.
//
// What does not count: passwords and verifiers are computed before. It records nothing anywhere, writes no file for PgBouncer and
// does not look whether that goes by them, waits neither for log-ins that are under way nor for sessions that PostgreSQL does not
// show yet, and does not look again, once the password has changed, who came in with the old one.
type plainRoles struct {
	*plainSQL
	bench   *bench
	db      wire.CreatedDatabase
	names   database.Names
	console *sql.DB
}

func newPlainRoles(ctx context.Context, b *bench, name string) (*plainRoles, error) {
	plain, err := newPlainSQL(ctx, b)
	if err != nil {
		return nil, err
	}
	h := &plainRoles{plainSQL: plain, bench: b}
	if h.db, err = b.client.create(ctx, name); err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.names = database.RoleNames(h.db.ID, h.db.Name)
	dsn, err := b.stack.ConsoleDSN()
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.console, err = sql.Open("postgres", dsn); err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.console.SetMaxOpenConns(1)
	return h, nil
}

func (h *plainRoles) close() error {
	h.plainSQL.close()
	if h.console != nil {
		return h.console.Close()
	}
	return nil
}

// secret is a password with its verifier.
type secret struct{ text, verifier string }

func newSecret(text string) secret {
	return secret{text, credential.Verifier(text, [16]byte{2}, credential.Iterations)}
}

// createRole makes a role of the profile read_only.
func (h *plainRoles) createRole(ctx context.Context, role string, s secret) error {
	name, gate := ident(role), pq.QuoteLiteral(role)
	err := transact(ctx, h.agent, []string{
		fmt.Sprintf("CREATE ROLE %s NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS "+
			"CONNECTION LIMIT %d", name, roleLimit),
		"INSERT INTO pooler.gate (login, database, open) VALUES (" + gate + "," + pq.QuoteLiteral(h.db.Name) + ",false)",
		"SET LOCAL ROLE " + ident(h.names.Owner),
		"GRANT CONNECT ON DATABASE " + ident(h.db.Name) + " TO " + name,
		"RESET ROLE",
	})
	if err != nil {
		return err
	}
	if err := run(ctx, h.console, "RELOAD"); err != nil {
		return err
	}
	err = transact(ctx, h.agent, []string{
		"GRANT " + ident(h.names.ReadGroup) + " TO " + name + " WITH INHERIT TRUE, SET FALSE",
		"ALTER ROLE " + name + " LOGIN PASSWORD " + pq.QuoteLiteral(s.verifier),
		"UPDATE pooler.gate SET open = true WHERE login = " + gate,
	})
	return errors.Join(err, h.getsIn(ctx, role, s))
}

// rotateRole leaves the role with another password.
func (h *plainRoles) rotateRole(ctx context.Context, role string, before, after secret) error {
	name, gate := ident(role), pq.QuoteLiteral(role)
	if err := run(ctx, h.agent, "UPDATE pooler.gate SET open = false WHERE login = "+gate); err != nil {
		return err
	}
	if err := h.killClients(ctx, role); err != nil {
		return err
	}
	if err := run(ctx, h.agent, "ALTER ROLE "+name+" NOLOGIN"); err != nil {
		return err
	}
	if err := h.endSessions(ctx, role); err != nil {
		return err
	}
	err := transact(ctx, h.agent, []string{
		"ALTER ROLE " + name + " LOGIN PASSWORD " + pq.QuoteLiteral(after.verifier),
		"UPDATE pooler.gate SET open = true WHERE login = " + gate,
	})
	return errors.Join(err, h.getsIn(ctx, role, after), h.staysOut(ctx, role, before))
}

// killClients closes the clients of a login until PgBouncer shows none.
func (h *plainRoles) killClients(ctx context.Context, role string) error {
	for {
		clients, err := clientsOf(ctx, h.console, role)
		if err != nil || len(clients) == 0 {
			return err
		}
		for _, client := range clients {
			if err := run(ctx, h.console, "KILL_CLIENT "+client); err != nil {
				return err
			}
		}
	}
}

// clientsOf returns the IDs that PgBouncer knows the clients of a login by.
func clientsOf(ctx context.Context, console *sql.DB, role string) (ids []string, err error) {
	names, clients, err := stack.Rows(ctx, console, "SHOW CLIENTS")
	for _, c := range clients {
		if c[slices.Index(names, "user")] == role {
			ids = append(ids, c[slices.Index(names, "id")])
		}
	}
	return ids, err
}

// endSessions terminates the sessions of a login until PostgreSQL shows none.
func (h *plainRoles) endSessions(ctx context.Context, role string) error {
	const query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1"
	for {
		var n int
		if err := h.agent.QueryRowContext(ctx, query, role).Scan(&n); err != nil || n == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// directly and pooled are the ways in, none of them open yet: at PostgreSQL, and through PgBouncer's socket.
func (h *plainRoles) directly(who customer) (*sql.DB, error) {
	return sql.Open("postgres", h.bench.stack.Server.URLFor(who.Username, who.Password, h.db.Name))
}

func (h *plainRoles) pooled(who customer) (*sql.DB, error) {
	dsn, err := h.bench.stack.ConsoleDSN()
	if err != nil {
		return nil, err
	}
	// Of two values for a name the last counts.
	return sql.Open("postgres", fmt.Sprintf("%s dbname='%s' user='%s' password='%s'", dsn, h.db.Name, who.Username, who.Password))
}

func (h *plainRoles) getsIn(ctx context.Context, role string, s secret) error {
	return h.logIn(ctx, role, s, func(err error) error { return err })
}

func (h *plainRoles) staysOut(ctx context.Context, role string, s secret) error {
	return h.logIn(ctx, role, s, func(err error) error {
		var refusal *pq.Error
		if errors.As(err, &refusal) {
			return nil
		}
		return fmt.Errorf("the old password of %s: %w", role, errors.Join(errAdmitted, err))
	})
}

var errAdmitted = errors.New("not refused")

// logIn tries each way and hands what became of it to judge.
func (h *plainRoles) logIn(ctx context.Context, role string, s secret, judge func(error) error) error {
	for _, way := range []func(customer) (*sql.DB, error){h.directly, h.pooled} {
		db, err := way(customer{Username: role, Password: s.text})
		if err != nil {
			return err
		}
		err = run(ctx, db, "SELECT 1")
		if err := errors.Join(judge(err), db.Close()); err != nil {
			return err
		}
	}
	return nil
}

// drop removes a role that was made by hand.
func (h *plainRoles) drop(ctx context.Context, role string) error {
	name := ident(role)
	return errors.Join(
		run(ctx, h.maintenance, "DELETE FROM pooler.gate WHERE login = "+pq.QuoteLiteral(role)),
		h.killClients(ctx, role), h.endSessions(ctx, role),
		run(ctx, h.super, "SET ROLE "+ident(h.names.Owner)+";REVOKE CONNECT ON DATABASE "+ident(h.db.Name)+" FROM "+name+
			";RESET ROLE;DROP ROLE "+name),
	)
}
