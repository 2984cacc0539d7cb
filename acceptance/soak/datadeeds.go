//go:build linux

package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/soak/machines"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// table has the rows that actions write: each its step's number, so that whoever reads them knows whose they are.
const table = "public.soak"

var dataDeeds = map[plan.Do]deed{
	"write": {sql: func(ctx context.Context, d *doing) error {
		l := d.on.login(string(database.OwnerLogin))
		if l.Known() == "" {
			return errUnknown
		}
		begun := time.Now()
		err := d.write(ctx, d.on, l, d.step)
		known := time.Now()
		if err != nil {
			known = time.Time{} // the commit may have come through
		}
		d.on.rows.Write(d.step, begun, known)
		return err
	}},
	"hold a connection open": {sql: func(ctx context.Context, d *doing) error {
		for _, name := range d.loginNames() {
			l := d.in.login(name)
			password := l.Known()
			if password == "" {
				continue
			}
			db, err := d.connect(d.in, l.username, password)
			if err != nil {
				return err
			}
			if err := db.PingContext(ctx); err != nil {
				return errors.Join(err, db.Close())
			}
			l.held = append(l.held, held{db, password})
		}
		return nil
	}},
}

// held is a connection that stays open, with the password that it was opened with.
type held struct {
	*sql.DB
	password string
}

// loginNames are the logins that the action is about: that of a role, or those that came with the database.
func (d *doing) loginNames() []string {
	if d.on.kind == plan.Role || d.on.kind == plan.LegacyRole {
		return []string{d.on.roleName()}
	}
	return []string{string(database.OwnerLogin), string(database.RuntimeLogin), string(database.ReadonlyLogin)}
}

// roleName is what the login of an additional role is called here.
func (t *thing) roleName() string { return fmt.Sprintf("role %d", t.step) }

// write writes a row as the owner. The table is made with the first one.
func (r *run) write(ctx context.Context, t *thing, l *login, row int) error {
	db, err := r.connect(t, l.username, l.Known())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (step integer)"); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+table+" VALUES ($1)", row)
	return err
}

// rows are those that a database holds, read as its owner.
func (r *run) rows(ctx context.Context, t *thing, l *login) ([]int, error) {
	db, err := r.connect(t, l.username, l.Known())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return rowsOf(ctx, db, table)
}

// rowsOf reads a table, which may not have been made.
func rowsOf(ctx context.Context, db *sql.DB, table string) (rows []int, err error) {
	var exists bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	found, err := stack.Column(ctx, db, "SELECT step FROM "+table)
	for _, text := range found {
		var row int
		if _, err := fmt.Sscan(text, &row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, err
}

// connect is at most one connection to a database, through the pooler of the server that has it.
func (r *run) connect(t *thing, username, password string) (*sql.DB, error) {
	at, err := r.serverOf(t)
	if err != nil {
		return nil, err
	}
	connector, err := pq.NewConnector(at.PoolerURL(t.name, username, password))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// serverOf is the server that a database is on, by the metadata: a plan moves databases.
func (r *run) serverOf(t *thing) (*stack.Stack, error) {
	meta, err := sql.Open("postgres", r.first.MetadataURL())
	if err != nil {
		return nil, err
	}
	defer meta.Close()
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	var server string
	if err := meta.QueryRowContext(ctx, "SELECT server_id FROM databases WHERE id = $1", t.known()).Scan(&server); err != nil {
		return nil, err
	}
	if server == r.second.ServerID() {
		return r.second, nil
	}
	return r.first, nil
}

// masked is the network of the driver with so many bits.
func masked(bits int) string {
	return netip.PrefixFrom(netip.MustParseAddr(machines.Caller), bits).Masked().Addr().String()
}

func entryOf(t *thing) id.AllowlistEntryID { return id.AllowlistEntryID(t.known()) }
