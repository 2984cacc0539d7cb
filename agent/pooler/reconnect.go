package pooler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/floors"
)

// Reconnect has PgBouncer close the server connections of both entries of a database, since only new ones begin with what is set
// for a login or a database now. One that no client has is closed at once, any other when its transaction is over. A client of
// the first entry is ended with its connection (server_fast_close), one of the second goes on with another. PgBouncer sees to
// that by itself, within a third of a second from when it can. Reconnect returns once all connections of before were seen to be
// marked for it.
func (c *Console) Reconnect(ctx context.Context, database string) error {
	before, err := c.quietServersOf(ctx, database)
	if err != nil {
		return err
	}
	for _, entry := range EntryNames(database) {
		if err := c.command(ctx, "RECONNECT "+quoteDouble(entry)); err != nil {
			return err
		}
	}
	after, err := c.serversOf(ctx, database)
	if err != nil {
		return err
	}
	for id := range before {
		if s, there := after[id]; there && !s.closing {
			return fmt.Errorf("%w: database %q keeps the server connection %s", ErrNotTakenOver, database, id)
		}
	}
	return nil
}

// server is a server connection of PgBouncer.
type server struct {
	beginning bool // in the middle of its log-in
	closing   bool // to be closed
}

// serversOf returns the server connections of both entries by their IDs.
func (c *Console) serversOf(ctx context.Context, database string) (map[string]server, error) {
	entries, servers := EntryNames(database), map[string]server{}
	err := c.each(ctx, "SHOW SERVERS", func(r row) error {
		if slices.Contains(entries, r.text("database")) {
			servers[r.text("id")] = server{beginning: r.text("state") == "new", closing: r.number("close_needed") != 0}
		}
		return nil
	})
	return servers, err
}

const (
	quietTime  = 250 * time.Millisecond
	quietPause = 2 * time.Millisecond
)

// quietServersOf is serversOf, but waits, not for long, until none is in the middle of its log-in. One that is cut off there
// counts as failed: for server_login_retry PgBouncer would refuse whoever comes to an entry without other server connections.
func (c *Console) quietServersOf(ctx context.Context, database string) (map[string]server, error) {
	for began := time.Now(); ; {
		servers, err := c.serversOf(ctx, database)
		busy := false
		for _, s := range servers {
			busy = busy || s.beginning
		}
		if err != nil || !busy || time.Since(began) > quietTime {
			return servers, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(quietPause):
		}
	}
}

// remembering is the first version of PgBouncer that remembers default_transaction_read_only for each client, as it was when the
// client logged in, and sets it on whatever server connection the client gets.
var remembering = floors.Number{1, 26}

// Keeping returns, by database, the IDs of the clients that go on with the default_transaction_read_only that they began with,
// also over new server connections: none in a version of PgBouncer that does not remember it.
func (c *Console) Keeping(ctx context.Context, databases []string) (map[string][]string, error) {
	ids := map[string][]string{}
	version, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	if number, ok := floors.ParseNumber(version); !ok || !number.AtLeast(remembering) {
		return ids, nil
	}
	of := map[string]string{}
	for _, database := range databases {
		for _, entry := range EntryNames(database) {
			of[entry] = database
		}
	}
	clients, err := c.Clients(ctx)
	for _, client := range clients {
		if database, ours := of[client.Entry]; ours {
			ids[database] = append(ids[database], client.ID)
		}
	}
	return ids, err
}

// EndIdle ends those of some clients that are in no transaction, and have sent nothing for some time, and returns the others that
// are still there. What is known of a client is some milliseconds old when its turn comes. So whoever sends one transaction after
// the other, and is ended without such a time, may have begun one.
func (c *Console) EndIdle(ctx context.Context, ids []string, quiet time.Duration) (left []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	clients, err := c.Clients(ctx)
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var idle []string
	for _, client := range clients {
		switch {
		case !wanted[client.ID]:
		case client.idle() && time.Since(client.RequestedAt) >= quiet:
			idle = append(idle, client.ID)
		default:
			left = append(left, client.ID)
		}
	}
	return left, c.KillClients(ctx, idle...)
}
