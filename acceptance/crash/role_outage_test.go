package crash_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// rotor rotates the password of one role of a database of its own, again and again.
type rotor struct {
	shared
	w         *world
	role      wire.RevealedRole
	clients   clients
	passwords []string // the last one is in force
}

func newRotor(t *testing.T, w *world, u *user) *rotor {
	t.Helper()
	r := &rotor{shared: shared{user: u}, w: w}
	r.open(t, w)
	r.role = r.makeRole(t, w)
	r.clients = w.openClients(t, loginOf(r.role))
	r.passwords = []string{r.role.Password}
	return r
}

// turn rotates once, with one key until that is done, and asks for the new password.
func (r *rotor) turn(ctx context.Context) error {
	want := int64(len(r.passwords) + 1)
	var done wire.RoleChange
	err := persists(ctx, func() (pending bool, err error) {
		done, err = r.change(ctx, r.w.api, r.role.RoleID, fmt.Sprint("turn ", want), role.Rotation)
		return done.Status == role.Pending, err
	})
	if err != nil || done.Status != role.Completed || done.CredentialGeneration != want {
		return fmt.Errorf("rotation to generation %d: %+v, %w", want, done, err)
	}
	var shown wire.RevealedRole
	err = persists(ctx, func() (pending bool, err error) {
		shown, err = r.user.at(r.w.api).Roles.Reveal(ctx, r.db.ID, r.role.RoleID)
		return false, err
	})
	if err != nil || shown.CredentialGeneration != want || shown.Password == "" {
		return fmt.Errorf("password of generation %d: %d, %w", want, shown.CredentialGeneration, err)
	}
	r.passwords = append(r.passwords, shown.Password)
	return nil
}

// check sees that only the last password is any good.
func (r *rotor) check(t *testing.T) {
	t.Helper()
	last := len(r.passwords) - 1
	r.clients.replaced(t, r.w, loginOf(r.role), loginOf(r.role).with(r.passwords[last]))
	for _, old := range r.passwords[max(1, last-4):last] {
		r.w.staysOut(t, "a password of before", loginOf(r.role).with(old))
	}
	r.w.getsIn(t, loginOf(r.role).with(r.passwords[last]))
}

// outage is something that goes away in the middle of rotations.
type outage struct {
	name string
	// away takes it down and back brings it up again.
	away, back func(t *testing.T, w *world) error
	// stuck says that rotations are begun while it is away, and none ends before it is back.
	stuck bool
}

var outages = []outage{
	{
		name: "PostgreSQL",
		away: func(t *testing.T, w *world) error { return w.Server.Stop(soon(t), cluster.Immediate) },
		back: func(t *testing.T, w *world) error {
			defer w.reconnects(t)
			return w.Server.Start(context.WithoutCancel(t.Context()))
		},
		stuck: true,
	},
	{
		name:  "PgBouncer",
		away:  func(_ *testing.T, w *world) error { return w.Pooler.Kill() },
		back:  func(t *testing.T, w *world) error { return w.Pooler.Start(context.WithoutCancel(t.Context())) },
		stuck: true,
	},
	{
		name:  "the agent",
		away:  func(_ *testing.T, w *world) error { return w.agent.Kill() },
		back:  func(t *testing.T, w *world) error { w.restartAgent(t); return nil },
		stuck: true,
	},
	{
		name: "the metadata, cleanly",
		away: func(t *testing.T, w *world) error { return w.Metadata.Stop(soon(t), cluster.Fast) },
		back: func(t *testing.T, w *world) error { return w.Metadata.Start(context.WithoutCancel(t.Context())) },
	},
	{
		name: "the metadata, at once",
		away: func(t *testing.T, w *world) error { return w.Metadata.Stop(soon(t), cluster.Immediate) },
		back: func(t *testing.T, w *world) error { return w.Metadata.Start(context.WithoutCancel(t.Context())) },
	},
}

// reconnects drops the connections of the test's own that a restart has ended.
func (w *world) reconnects(t *testing.T) {
	t.Helper()
	for _, db := range []interface{ SetMaxIdleConns(int) }{w.server, w.maintenance, w.console, w.meta} {
		db.SetMaxIdleConns(0)
		db.SetMaxIdleConns(2)
	}
}

// Whatever goes away in the middle of rotations: each is finished once, and only the password of the last is any good.
func TestOutagesUnderRotations(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	u := w.newUser(t, 50)
	for _, o := range outages {
		if !t.Run(o.name, func(t *testing.T) { o.run(t, w, u) }) {
			t.Fatal("what this left would only confuse the next")
		}
	}
}

func (o outage) run(t *testing.T, w *world, u *user) {
	const rotors, times = 3, 2
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer stop()
	var turns atomic.Int64
	var over atomic.Bool
	var all []*rotor
	for range rotors {
		r := newRotor(t, w, u)
		all = append(all, r)
		crowd.Go(func() {
			for !over.Load() {
				if err := r.turn(ctx); err != nil {
					t.Error(err)
					stop()
					return
				}
				turns.Add(1)
			}
		})
	}
	more := func() {
		enough := turns.Load() + rotors
		eventually(t, "rotations go on", func() (bool, string) {
			return turns.Load() >= enough || ctx.Err() != nil, fmt.Sprint(turns.Load(), " are done")
		})
	}
	for range times {
		more()
		noError(t, o.away(t, w))
		if o.stuck {
			w.awaitPending(t)
		}
		noError(t, o.back(t, w))
	}
	more()
	over.Store(true)
	crowd.Wait()
	w.reconnects(t)
	w.settled(t)
	for _, r := range all {
		r.isLetIn(t)
		r.check(t)
	}
}

// isLetIn waits until the pooler lets the role in: after a crash of PostgreSQL it may need a moment to see which of its
// connections are dead.
func (r *rotor) isLetIn(t *testing.T) {
	t.Helper()
	l := loginOf(r.role).with(r.passwords[len(r.passwords)-1])
	eventually(t, "the role is let in", func() (bool, string) {
		for way, db := range r.w.ways(t, l) {
			_, err := db.ExecContext(soon(t), "SELECT 1")
			noError(t, db.Close())
			if err != nil {
				return false, way + ": " + err.Error()
			}
		}
		return true, ""
	})
}

// awaitPending waits until a rotation is in the middle.
func (w *world) awaitPending(t *testing.T) {
	t.Helper()
	eventually(t, "a rotation is in the middle", func() (bool, string) {
		var n int
		err := w.meta.QueryRowContext(t.Context(), "SELECT count(*) FROM role_changes WHERE status = 'pending'").Scan(&n)
		return err == nil && n > 0, fmt.Sprint(err)
	})
}
