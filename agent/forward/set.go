package forward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// mostForwards bounds the databases for which a server sends on who comes: each has a socket.
const mostForwards = 1000

// set implements command.Forward. Nobody passes with a verifier of before from when the forward is stored, and nobody who did is
// left when those of now are given.
func (x *Forwards) set(ctx context.Context, e protocol.Command, c command.Forward) (r command.Forwarded, err error) {
	to := target{host: c.Host, port: c.Port, ca: c.CA}
	if _, err := to.tls(); err != nil {
		return r, err
	}
	if err := checkPath(x.settings.ForwardSocket(mostForwards + 1)); err != nil {
		return r, err
	}
	if err := x.refuseTaken(ctx, c); err != nil {
		return r, err
	}
	if err := x.enter(ctx, c); err != nil {
		return r, err
	}
	if r.From = to.source(ctx); ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return r, err
	}
	crash.Point(crash.ForwardApplied)
	if err := x.evict(ctx, c); err != nil {
		return r, err
	}
	crash.Point(crash.ForwardEvicted)
	r, err = ledger.Conclude(ctx, x.ledger, e, r, crash.ForwardReply, giveStatements(c)...)
	loop.Wake(x.wake)
	return r, err
}

// evict ends the clients whose verifier is another one now, or none, and those of networks that are not allowed any more.
func (x *Forwards) evict(ctx context.Context, c command.Forward) error {
	shut, err := pg.Column(ctx, x.db, "SELECT login FROM pooler.forwarded WHERE database = $1 AND verifier IS NULL", c.Name)
	if err == nil && len(shut) > 0 {
		err = x.pooler.Evict(ctx, pooler.OfLogins(c.Name, shut))
	}
	if err == nil {
		err = x.pooler.Evict(ctx, pooler.NotAllowed(c.Name, c.Networks))
	}
	return err
}

// refuseTaken refuses a name that is in use here, and logins that are. A database that this server has parted with is sent on
// before it is dropped, and one that comes back until customers are let in here.
func (x *Forwards) refuseTaken(ctx context.Context, c command.Forward) error {
	const query = `SELECT EXISTS (SELECT FROM pooler.forward WHERE database = $1 AND database_id <> $2)
		OR NOT EXISTS (SELECT FROM pooler.forward WHERE database = $1)
		AND NOT EXISTS (SELECT FROM ledger.parted p JOIN ledger.database d ON d.id = p.database_id
			WHERE d.id = $2 AND d.name = $1 AND d.isolated IS NULL AND NOT d.open)
		AND (EXISTS (SELECT FROM ledger.database WHERE name = $1 AND isolated IS NULL)
			OR EXISTS (SELECT FROM pg_database WHERE datname = $1))`
	taken, err := pg.One[bool](ctx, x.db, query, c.Name, string(c.DatabaseID))
	switch {
	case err != nil:
		return err
	case taken:
		return command.Refuse(command.ReasonNameTaken, "the server has a database %s, or sends on for another one of that name",
			c.Name)
	}
	const others = `SELECT EXISTS (SELECT FROM unnest($1::text[]) n (login)
		WHERE EXISTS (SELECT FROM pooler.gate g WHERE g.login = n.login AND g.database <> $2)
		OR EXISTS (SELECT FROM pooler.forwarded s WHERE s.login = n.login AND s.database <> $2))`
	taken, err = pg.One[bool](ctx, x.db, others, arrayOf(usernames(c)), c.Name)
	if err == nil && taken {
		err = command.Refuse(command.ReasonNameTaken, "a login of %s is one of another database of this server", c.Name)
	}
	if err != nil {
		return err
	}
	return x.refuseUnwritable(ctx, c)
}

// refuseUnwritable refuses what cannot stand in PgBouncer's files, before it is in the way of everybody else's.
func (x *Forwards) refuseUnwritable(ctx context.Context, c command.Forward) error {
	state, err := x.ledger.PoolerState(ctx)
	if err != nil {
		return err
	}
	e := pooler.Entry{Database: c.Name, ConnectionCap: c.ConnectionCap, Allow: c.Networks, Elsewhere: x.settings.ForwardSocket(1)}
	for _, l := range c.Logins {
		e.Logins = append(e.Logins, pooler.Login{Name: l.Username})
	}
	state.Entries = append(slices.DeleteFunc(state.Entries, func(o pooler.Entry) bool { return o.Database == c.Name }), e)
	if _, err := pooler.Render(state); err != nil {
		return &command.Refusal{Reason: command.ReasonInvalid, Message: "PgBouncer cannot be told of it", Cause: err}
	}
	return nil
}

// enter stores a forward, and opens its line.
func (x *Forwards) enter(ctx context.Context, c command.Forward) error {
	x.storing.Lock()
	defer x.storing.Unlock()
	s, err := x.store(ctx, c)
	if err != nil {
		return err
	}
	crash.Point(crash.ForwardStored)
	if err := x.open(s); err != nil {
		return &command.Refusal{Reason: command.ReasonFailed, Message: "no socket leads to the other server", Cause: err}
	}
	return nil
}

// store takes the verifiers away that are not those of now, too.
func (x *Forwards) store(ctx context.Context, c command.Forward) (s stored, err error) {
	const query = `SELECT count(*) FROM pooler.forward WHERE database <> $1`
	if n, err := pg.One[int](ctx, x.db, query, c.Name); err != nil || n >= mostForwards {
		if err == nil {
			err = command.Refuse(command.ReasonFailed, "the server sends on for %d databases already", n)
		}
		return s, err
	}
	if err := pg.Atomically(ctx, x.db, storeStatements(c)...); err != nil {
		return s, err
	}
	all, err := x.stored(ctx)
	for _, s := range all {
		if s.name == c.Name {
			return s, nil
		}
	}
	if err == nil {
		err = command.Refuse(command.ReasonNameTaken, "the server has a database %s by now", c.Name)
	}
	return s, err
}

func storeStatements(c command.Forward) []string {
	networks := make([]string, len(c.Networks))
	for i, n := range c.Networks {
		networks[i] = n.String()
	}
	name, db := pg.Quote(c.Name), pg.Quote(string(c.DatabaseID))
	return []string{
		"DELETE FROM pooler.forward WHERE database_id = " + db + " AND database <> " + name,
		fmt.Sprintf(`INSERT INTO pooler.forward (database, database_id, socket, host, port, ca, connection_cap, networks, until)
			SELECT %s, %s, (SELECT min(n) FROM generate_series(1, %d) n
				WHERE NOT EXISTS (SELECT FROM pooler.forward WHERE socket = n)),
				%s, %d, %s, %d, %s, %s
			ON CONFLICT (database) DO UPDATE SET host = excluded.host, port = excluded.port, ca = excluded.ca,
				connection_cap = excluded.connection_cap, networks = excluded.networks, until = excluded.until`,
			name, db, mostForwards+1, pg.Quote(c.Host), c.Port, pg.Quote(c.CA), c.ConnectionCap, pg.Quote(arrayOf(networks)),
			pg.Quote(c.Until.UTC().Format("2006-01-02 15:04:05.999999Z07:00"))),
		"UPDATE pooler.forwarded s SET verifier = NULL WHERE s.database = " + name + " AND NOT EXISTS (SELECT FROM " + given(c) +
			" WHERE n.login = s.login AND n.verifier = s.verifier)",
		"INSERT INTO pooler.forwarded (login, database) SELECT n.login, " + name + " FROM " + given(c) +
			" ON CONFLICT (login) DO NOTHING",
	}
}

// giveStatements have those pass who are named.
func giveStatements(c command.Forward) []string {
	name := pg.Quote(c.Name)
	return []string{
		"DELETE FROM pooler.forwarded s WHERE s.database = " + name + " AND NOT EXISTS (SELECT FROM " + given(c) +
			" WHERE n.login = s.login)",
		"UPDATE pooler.forwarded s SET verifier = n.verifier FROM " + given(c) + " WHERE n.login = s.login AND s.database = " + name,
	}
}

// given are the logins of a command as rows n.
func given(c command.Forward) string {
	verifiers := make([]string, len(c.Logins))
	for i, l := range c.Logins {
		verifiers[i] = l.Verifier
	}
	return fmt.Sprintf("unnest(%s::text[], %s::text[]) n (login, verifier)", pg.Quote(arrayOf(usernames(c))),
		pg.Quote(arrayOf(verifiers)))
}

func usernames(c command.Forward) []string {
	names := make([]string, len(c.Logins))
	for i, l := range c.Logins {
		names[i] = l.Username
	}
	return names
}

// arrayOf writes texts without quotes, commas and backslashes as an array of PostgreSQL's.
func arrayOf(texts []string) string { return "{" + strings.Join(texts, ",") + "}" }
