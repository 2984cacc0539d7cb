package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

const (
	rolePairsPerRun = 5 // pairs for one of the runs asked for
	// mostForRoles is times what it takes by hand: pgherd goes through the pooler as well, which has to shut out whoever came with
	// the old password.
	mostForRoles = 6.0
)

// measureRoleCreate makes roles through the API and by hand. What was made is removed between the measurements.
func measureRoleCreate(ctx context.Context, b *bench) ([]row, error) {
	h, err := b.byHand(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	db, err := b.client.create(ctx, "roles-made")
	if err != nil {
		return nil, err
	}
	var made wire.Role
	name := func(n int) string { return fmt.Sprintf("by_hand_%03d", n) }
	t, err := inTurn(b.runs*rolePairsPerRun, way{
		measured: func(n int) (err error) {
			made, err = b.client.createRole(ctx, db.ID, fmt.Sprintf("role %d", n), roleLimit)
			return err
		},
		after: func(int) error { return b.client.removeRole(ctx, db.ID, made.RoleID) },
	}, way{
		measured: func(n int) error { return h.createRole(ctx, db.Name, name(n)) },
		after:    func(n int) error { return h.dropRole(ctx, db.Name, name(n)) },
	})
	if err != nil {
		return nil, err
	}
	return []row{t.row("POST /custom-roles against CREATE ROLE, GRANT and a log-in", mostForRoles)}, nil
}

// rotations are those of two roles, one of the API's and one made by hand.
type rotations struct {
	byHand
	db      wire.CreatedDatabase
	made    wire.Role
	who     customer // the role that was made by hand
	secrets int      // how many it has had
	client  *sql.DB  // open while a password is changed
}

func newRotations(ctx context.Context, b *bench, name string) (r *rotations, err error) {
	r = &rotations{}
	if r.byHand, err = b.byHand(ctx); err != nil {
		return nil, err
	}
	if r.db, err = b.client.create(ctx, name); err == nil {
		r.made, err = b.client.createRole(ctx, r.db.ID, "rotated", roleLimit)
	}
	r.who = customer{r.db.Name, "rotated_by_hand_in_" + name, byHandPassword}
	if err == nil {
		err = r.createRole(ctx, r.who.Database, r.who.Username)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// end leaves nothing that was made by hand.
func (r *rotations) end(ctx context.Context) error {
	return errors.Join(r.dropRole(ctx, r.who.Database, r.who.Username), r.Close())
}

func (r *rotations) ours(ctx context.Context) func(int) error {
	return func(int) error { return r.bench.client.rotateRole(ctx, r.db.ID, r.made.RoleID) }
}

func (r *rotations) theirs(ctx context.Context) func(int) error {
	return func(int) error {
		r.secrets++
		before, password := r.who, fmt.Sprintf("password number %d", r.secrets)
		r.who.Password = password
		return r.rotate(ctx, before, password)
	}
}

// measureRotate changes the password of a role through the API, and that of another by hand: while nobody is connected, and
// while a client of the role holds a connection, through the pooler or by hand to PostgreSQL. Both are judged.
func measureRotate(ctx context.Context, b *bench) (_ []row, err error) {
	r, err := newRotations(ctx, b, "roles-rotated")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end(ctx)) }()
	alone, err := inTurn(b.runs*rolePairsPerRun, way{measured: r.ours(ctx)}, way{measured: r.theirs(ctx)})
	if err != nil {
		return nil, err
	}
	pooled := func(int) error {
		who, err := b.client.revealRole(ctx, r.db.ID, r.made.RoleID)
		if err != nil {
			return err
		}
		return r.open(ctx, b.stack.PoolerURL(who.Database, who.Username, who.Password))
	}
	direct := func(int) error {
		return r.open(ctx, b.stack.Server.URLFor(r.who.Username, r.who.Password, r.who.Database))
	}
	dead := func(int) error { return r.dead(ctx) }
	soonDead := func(int) error { // pg_terminate_backend waits for nobody
		time.Sleep(terminated)
		return r.dead(ctx)
	}
	beside, err := inTurn(b.runs*rolePairsPerRun,
		way{before: pooled, measured: r.ours(ctx), after: dead}, way{before: direct, measured: r.theirs(ctx), after: soonDead})
	if err != nil {
		return nil, err
	}
	return []row{
		alone.row("rotation by POST .../changes against ALTER ROLE, pg_terminate_backend and log-ins", mostForRoles),
		beside.row("  with an open client of the role, which both end", mostForRoles),
	}, nil
}

// open opens a client with one connection.
func (r *rotations) open(ctx context.Context, url string) (err error) {
	if r.client, err = sql.Open("postgres", url); err != nil {
		return err
	}
	r.client.SetMaxOpenConns(1)
	return r.client.PingContext(ctx)
}

// terminated is how long a session may take to end.
const terminated = 50 * time.Millisecond

// endTime is how long a client has to tell that it was ended; queue_wait_timeout is longer.
const endTime = 10 * time.Second

// dead demands that the open client was ended. A client that waits in the pooler's queue is not dead.
func (r *rotations) dead(ctx context.Context) error {
	brief, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	_, err := r.client.ExecContext(brief, "SELECT 1")
	if closed := r.client.Close(); brief.Err() != nil || err == nil {
		return errors.Join(errors.New("a client of the old password was not ended"), err, closed)
	}
	return nil
}
