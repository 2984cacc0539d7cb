package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

const (
	rolePairsPerRun = 5   // pairs for one of the runs asked for
	mostForRoles    = 2.0 // times what it takes by hand
)

// measureRoleCreate makes roles through the API and by hand. What was made is removed between the measurements.
func measureRoleCreate(ctx context.Context, b *bench) (_ []row, err error) {
	h, err := newPlainRoles(ctx, b, "roles-made")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var made wire.Role
	ours := way{
		measured: func(n int) (err error) {
			made, err = b.client.createRole(ctx, h.db.ID, fmt.Sprintf("role %d", n))
			return err
		},
		after: func(int) error { return b.client.removeRole(ctx, h.db.ID, made.RoleID) },
	}
	s := newSecret("a password of somebody")
	name := func(n int) string { return fmt.Sprintf("by_hand_%03d", n) }
	byHand := way{
		measured: func(n int) error { return h.createRole(ctx, name(n), s) },
		after:    func(n int) error { return h.drop(ctx, name(n)) },
	}
	t, err := inTurn(b.runs*rolePairsPerRun, ours, byHand)
	if err != nil {
		return nil, err
	}
	return []row{t.row("POST /custom-roles against the same SQL, RELOAD and log-ins by hand", mostForRoles)}, nil
}

// measureRotate changes the password of a role through the API, and that of another by hand: while nobody is connected, and
// while a client of the role holds a connection through the pooler. Both are judged.
func measureRotate(ctx context.Context, b *bench) (_ []row, err error) {
	h, err := newPlainRoles(ctx, b, "roles-rotated")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	r := rotations{plainRoles: h, now: newSecret("password number 0")}
	if r.made, err = b.client.createRole(ctx, h.db.ID, "rotated"); err != nil {
		return nil, err
	}
	if err := h.createRole(ctx, rotatedByHand, r.now); err != nil {
		return nil, err
	}
	alone, err := inTurn(b.runs*rolePairsPerRun, way{measured: r.ours(ctx)}, way{before: r.next, measured: r.byHand(ctx)})
	if err != nil {
		return nil, err
	}
	beside, err := inTurn(b.runs*rolePairsPerRun,
		way{before: r.openOurs(ctx), measured: r.ours(ctx), after: r.dead(ctx)},
		way{before: r.openByHand(ctx), measured: r.byHand(ctx), after: r.dead(ctx)})
	if err != nil {
		return nil, err
	}
	return []row{
		alone.row("rotation by POST .../changes against the same SQL and log-ins by hand", mostForRoles),
		beside.row("  with an open pooled client of the role, which both end", mostForRoles),
	}, nil
}

const rotatedByHand = "rotated_by_hand"

// rotations are those of two roles, one of the API's and one made by hand.
type rotations struct {
	*plainRoles
	made    wire.Role
	before  secret // of the role that was made by hand
	now     secret
	secrets int     // how many it has had
	client  *sql.DB // open while a password is changed, with the one connection
	conn    *sql.Conn
}

func (r *rotations) ours(ctx context.Context) func(int) error {
	return func(int) error { return r.bench.client.rotateRole(ctx, r.db.ID, r.made.RoleID) }
}

func (r *rotations) byHand(ctx context.Context) func(int) error {
	return func(int) error { return r.rotateRole(ctx, rotatedByHand, r.before, r.now) }
}

// next is the next password that is set by hand.
func (r *rotations) next(int) error {
	r.secrets++
	r.before, r.now = r.now, newSecret(fmt.Sprintf("password number %d", r.secrets))
	return nil
}

func (r *rotations) openOurs(ctx context.Context) func(int) error {
	return func(int) error {
		who, err := r.bench.client.revealRole(ctx, r.db.ID, r.made.RoleID)
		if err != nil {
			return err
		}
		return r.open(ctx, who)
	}
}

func (r *rotations) openByHand(ctx context.Context) func(int) error {
	return func(n int) error {
		who := customer{Username: rotatedByHand, Password: r.now.text}
		return errors.Join(r.next(n), r.open(ctx, who))
	}
}

func (r *rotations) open(ctx context.Context, who customer) (err error) {
	if r.client, err = r.pooled(who); err != nil {
		return err
	}
	if r.conn, err = r.client.Conn(ctx); err != nil {
		return err
	}
	return r.conn.PingContext(ctx)
}

// dead demands that the open client was ended: by a server that says so, or by whoever closed it. A client that waits in the
// pooler's queue is not dead.
func (r *rotations) dead(ctx context.Context) func(int) error {
	return func(int) error {
		brief, cancel := context.WithTimeout(ctx, endTime)
		defer cancel()
		_, err := r.conn.ExecContext(brief, "SELECT 1")
		_ = r.conn.Close() // it may have been closed already
		if closed := r.client.Close(); brief.Err() != nil || !isEnd(err) {
			return errors.Join(errNotEnded, err, closed)
		}
		return nil
	}
}

var errNotEnded = errors.New("a client of the old password was not ended")

// endTime is how long a client has to tell that it was ended; queue_wait_timeout is longer.
const endTime = 10 * time.Second

// endings are the codes of an ended session: PostgreSQL's and PgBouncer's.
var endings = []pqerror.Code{"57P01", "08P01"}

func isEnd(err error) bool {
	var told *pq.Error
	if errors.As(err, &told) {
		return slices.Contains(endings, told.Code)
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF)
}
