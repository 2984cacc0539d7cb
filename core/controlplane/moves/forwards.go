package moves

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// registerForwards registers the periodic task that tells servers whom to send on, and whereto. Whatever changes of a database is
// told in the next round: nobody who changes something has to think of it.
func (m *Moves) registerForwards() {
	rounds.RegisterServers(m.base.Rounds, rounds.ServerTask[move.Forward]{
		Name: "forwards", Every: move.ForwardEvery, Limit: m.base.RoleWait, Work: brake.Harmless,
		Of:  func(f move.Forward) (id.ServerID, id.AccountID) { return f.ServerID, "" },
		Key: func(f move.Forward) string { return string(f.DatabaseID) },
		Find: func(ctx context.Context, now time.Time) ([]move.Forward, error) {
			return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]move.Forward, error) {
				return tx.Forwards().Due(ctx, now)
			})
		},
		Do: func(ctx context.Context, _ time.Time, f move.Forward) error { return m.look(ctx, f) },
	})
	rounds.Register(m.base.Rounds, rounds.Task{
		Name: "forwards of servers that are away", Every: awayEvery, Work: brake.Harmless, Do: m.concludeAway,
	})
}

// sent is what a server is to be told of a database that it has left.
type sent struct {
	record database.Record
	gone   bool // the database is deleted; of one that is purged there is no record
	on     server.Server
	tell   command.Forward
	all    []move.Forward // of the database
}

// look is lookNow, of which what goes wrong with a server is noted, and tried again.
func (m *Moves) look(ctx context.Context, f move.Forward) error {
	_, err := m.lookNow(ctx, f)
	return err
}

// lookNow tells a server what has changed, and the one that has the database where its clients come from. untold is why it could
// not be told, which is noted.
func (m *Moves) lookNow(ctx context.Context, f move.Forward) (untold, err error) {
	next, over, err := m.told(ctx, f)
	if err != nil && ctx.Err() != nil {
		return err, err
	}
	if err == nil && !over && next.Looked(m.base.Clock.Now(), "") == f {
		return nil, nil // nothing is new
	}
	return err, m.keep(ctx, next, over, err)
}

// keep stores a forward after a look, or nothing of it any more: once it is over and everybody has been told, or has not been for
// long enough. untold is what went wrong.
func (m *Moves) keep(ctx context.Context, next move.Forward, over bool, untold error) error {
	now, why := m.base.Clock.Now(), ""
	if untold != nil {
		why = base.WhyRefused(untold)
		m.base.Log(ctx, "forward.not_told", next.DatabaseID, untold)
	}
	return m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if over && untold == nil || next.Address == "" && next.Over(now) && next.Forgotten(now) {
			return forget(ctx, tx, next.DatabaseID, next.ServerID)
		}
		all, err := tx.Forwards().Of(ctx, next.DatabaseID)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(o move.Forward) bool { return o.ServerID == next.ServerID })
		if at < 0 {
			return nil // ended meanwhile
		}
		next.EndedAt, next.Until = all[at].EndedAt, all[at].Until
		return tx.Forwards().Put(ctx, next.Looked(now, why))
	})
}

// told is a forward once its server, and that of the database, have been told what is new. over: nothing is left of it.
func (m *Moves) told(ctx context.Context, f move.Forward) (next move.Forward, over bool, err error) {
	want, err := m.wanted(ctx, f)
	if err != nil {
		return f, false, err
	}
	over = f.Over(m.base.Clock.Now()) || want.gone || want.record.ServerID == f.ServerID
	agent, err := m.base.AgentOf(ctx, f.ServerID)
	if err != nil {
		return f, over, err
	}
	if over {
		if want.record.ServerID != f.ServerID { // or it has the database again, and has ended that itself
			if f, err = m.end(ctx, agent, f); err != nil {
				return f, true, err
			}
		}
		f, err = m.unwelcome(ctx, f, want)
		return f, true, err
	}
	if f, err = m.send(ctx, agent, f, want.tell); err != nil || f.Address == "" {
		return f, false, err
	}
	if f.Welcomed == want.record.ServerID {
		return f, false, nil
	}
	f, err = m.welcome(ctx, f, want)
	return f, false, err
}

// wanted reads what a forward depends on.
func (m *Moves) wanted(ctx context.Context, f move.Forward) (w sent, err error) {
	err = m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		w = sent{}
		if w.record, err = tx.Databases().Get(ctx, f.DatabaseID); err != nil {
			w.gone = true
			return base.NotFound(err, nil)
		}
		if w.all, err = tx.Forwards().Of(ctx, f.DatabaseID); err != nil {
			return err
		}
		if w.gone = w.record.Status.Gone(); w.gone {
			return nil
		}
		if w.on, err = tx.Servers().Get(ctx, w.record.ServerID); err != nil {
			return err
		}
		w.tell = command.Forward{
			DatabaseID: f.DatabaseID, Name: w.record.Name, Host: w.on.PublicHost, Port: w.on.PublicPort, CA: w.on.PublicCA,
			ConnectionCap: w.record.ConnectionCap, Until: f.Until,
		}
		if w.tell.Networks, err = networks(ctx, tx, f.DatabaseID); err != nil {
			return err
		}
		if w.record.Status != database.Active || w.record.Suspended() {
			return nil // nobody gets in
		}
		w.tell.Logins, err = m.logins(ctx, tx, f.DatabaseID)
		return err
	})
	return w, err
}

func networks(ctx context.Context, tx ports.Tx, db id.DatabaseID) (list []netip.Prefix, err error) {
	entries, err := tx.Allowlist().List(ctx, db)
	for _, e := range entries {
		network, err := netip.ParsePrefix(e.CIDR)
		if err != nil {
			return nil, err
		}
		list = append(list, network)
	}
	return list, err
}

// logins are those that may log in, with what their passwords are compared with.
func (m *Moves) logins(ctx context.Context, tx ports.Tx, db id.DatabaseID) (list []command.Forwarding, err error) {
	own, err := tx.Logins().List(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, l := range own {
		list = append(list, command.Forwarding{Username: l.Username, Verifier: l.Verifier})
	}
	additional, err := tx.Roles().List(ctx, db)
	for _, r := range additional {
		if r.Status == role.Ready && !r.CredentialExpired(m.base.Clock.Now()) {
			list = append(list, command.Forwarding{Username: r.Username, Verifier: r.Verifier})
		}
	}
	return list[:min(len(list), command.MostForwarded)], err
}

// send tells a server whom to send on, unless it is what it was told last.
func (m *Moves) send(ctx context.Context, a ports.Agent, f move.Forward, c command.Forward) (move.Forward, error) {
	mark := markOf(c)
	if f.Sent == mark {
		return f, nil
	}
	f.Generation++
	c.Generation = f.Generation
	done, err := ports.Do(ctx, a, ports.Fence{}, c)
	if base.Superseded(err) {
		f.Generation = base.NextGeneration(f.Generation, err)
	}
	if err != nil {
		return f, err
	}
	if f.Sent = mark; done.From.IsValid() && f.Address != done.From.String() {
		f.Address, f.Welcomed = done.From.String(), ""
	}
	return f, nil
}

// markOf tells what a server was told from anything else.
func markOf(c command.Forward) string {
	sum := sha256.New()
	c.Generation = 0
	sum.Write(operation.Encode(c))
	for _, l := range c.Logins {
		sum.Write([]byte(l.Username + "\n" + l.Verifier + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// end has a server send nobody on any more.
func (m *Moves) end(ctx context.Context, a ports.Agent, f move.Forward) (move.Forward, error) {
	f.Generation++
	err := ports.Tell(ctx, a, ports.Fence{}, command.EndForward{DatabaseID: f.DatabaseID, Generation: f.Generation})
	if base.Superseded(err) {
		f.Generation = base.NextGeneration(f.Generation, err)
	}
	f.Sent = ""
	return f, err
}

// welcome has the server of the database admit clients of all that send on.
func (m *Moves) welcome(ctx context.Context, f move.Forward, want sent) (move.Forward, error) {
	agent, err := m.base.AgentOf(ctx, want.record.ServerID)
	if err != nil {
		return f, err
	}
	c := command.Welcome{DatabaseID: f.DatabaseID, From: []netip.Addr{}}
	for _, o := range want.all {
		f.WelcomeGeneration = max(f.WelcomeGeneration, o.WelcomeGeneration)
		if o.ServerID == f.ServerID {
			o.Address = f.Address
		}
		if at, err := netip.ParseAddr(o.Address); err == nil && o.EndedAt == nil {
			c.From = append(c.From, at)
		}
	}
	f.WelcomeGeneration++
	c.Generation = f.WelcomeGeneration
	err = ports.Tell(ctx, agent, ports.Fence{}, c)
	if base.Superseded(err) {
		f.WelcomeGeneration = base.NextGeneration(f.WelcomeGeneration, err)
	}
	if err == nil {
		f.Welcomed = want.record.ServerID
	}
	return f, err
}

// unwelcome has the server of the database admit no clients of a server any more whose forward is over. A deleted database is no
// exception: it may be recovered.
func (m *Moves) unwelcome(ctx context.Context, f move.Forward, want sent) (move.Forward, error) {
	if want.record.ID == "" || f.Address == "" {
		return f, nil
	}
	from := f.Address
	f.Address = ""
	f, err := m.welcome(ctx, f, want)
	if want.gone && command.RefusedFor(err, command.ReasonNotFound) {
		return f, nil // nothing of it is left
	}
	if err != nil {
		f.Address = from // they are admitted still
	}
	return f, err
}

// Forwards lists the servers that send on, the oldest first.
func (m *Moves) Forwards(ctx context.Context) ([]move.Forward, error) {
	return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]move.Forward, error) {
		return tx.Forwards().List(ctx)
	})
}

// EndForwards has all servers that have left a database, or one of them, send nobody on any more: within seconds, where they
// answer.
// VALIDATION_ERROR on "reason", or on "database": none sends on for it.
func (m *Moves) EndForwards(ctx context.Context, db id.DatabaseID, on id.ServerID, by operation.Order) error {
	if err := by.Check(); err != nil {
		return err
	}
	return m.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		all, err := tx.Forwards().Of(ctx, db)
		if err != nil {
			return err
		}
		ended := 0
		for _, f := range all {
			if on != "" && f.ServerID != on {
				continue
			}
			if err := tx.Forwards().Put(ctx, f.Ended(m.base.Clock.Now())); err != nil {
				return err
			}
			ended++
		}
		if ended == 0 {
			return fault.Invalid("database", "no server sends anybody on for it")
		}
		return m.base.Audit(ctx, tx, locked, audit.Operator, audit.ForwardEnded, audit.Details{
			"operator": by.By, "reason": by.Reason,
		})
	})
}

// sendOn stores that the server that is left sends on who still comes, as long as the order says, and the one that the database
// comes to no more: that ends it as soon as it serves.
func (t *turn) sendOn(ctx context.Context, tx ports.Tx) error {
	if err := forget(ctx, tx, t.Record.ID, t.to.ID); err != nil || t.Input.Forward <= 0 {
		return err
	}
	now := t.m.base.Clock.Now()
	return tx.Forwards().Put(ctx, move.Forward{
		DatabaseID: t.Record.ID, ServerID: t.from.ID, CreatedAt: now, Until: now.Add(t.Input.Forward), NextAt: now,
	})
}

// forget removes a forward, if there is one: to remove what is not there would end the transaction.
func forget(ctx context.Context, tx ports.Tx, db id.DatabaseID, on id.ServerID) error {
	all, err := tx.Forwards().Of(ctx, db)
	if err != nil || !slices.ContainsFunc(all, func(f move.Forward) bool { return f.ServerID == on }) {
		return err
	}
	return tx.Forwards().Remove(ctx, db, on)
}
