package pooler

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Who selects clients.
type Who struct {
	matches func(Client) bool
	// possible reports whether a client in the middle of its log-in may become one that matches.
	possible func(Pending) bool
}

// OfLogin selects the clients of a login at whatever entry.
func OfLogin(login string) Who {
	return Who{
		matches:  func(c Client) bool { return c.Login == login },
		possible: func(p Pending) bool { return p.Login == "" || p.Login == login },
	}
}

// OfDatabase selects the clients of both entries of a database.
func OfDatabase(database string) Who {
	names := EntryNames(database)
	return Who{
		matches:  func(c Client) bool { return slices.Contains(names, c.Entry) },
		possible: func(p Pending) bool { return p.Entry == "" || slices.Contains(names, p.Entry) },
	}
}

// OfLogins selects the clients of some logins at both entries of a database.
func OfLogins(database string, logins []string) Who {
	of := OfDatabase(database)
	return Who{
		matches:  func(c Client) bool { return of.matches(c) && slices.Contains(logins, c.Login) },
		possible: func(p Pending) bool { return of.possible(p) && (p.Login == "" || slices.Contains(logins, p.Login)) },
	}
}

// Everyone selects all clients of all databases.
func Everyone() Who {
	return Who{matches: func(Client) bool { return true }, possible: func(Pending) bool { return true }}
}

// LoggedIn selects the same clients, but nobody in the middle of a log-in: those may still come in.
func LoggedIn(database string) Who {
	who := OfDatabase(database)
	who.possible = func(Pending) bool { return false }
	return who
}

// NotAllowed selects the clients of a database whose address is in no network of its allowlist. An empty allowlist allows every
// address; the unix socket is always allowed.
func NotAllowed(database string, allow []netip.Prefix) Who {
	of := OfDatabase(database)
	outside := func(c Client) bool {
		if len(allow) == 0 || !c.Address.IsValid() {
			return false
		}
		return !slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(c.Address) })
	}
	return Who{
		matches:  func(c Client) bool { return of.matches(c) && outside(c) },
		possible: func(p Pending) bool { return len(allow) > 0 && of.possible(p) },
	}
}

// evictPause is the pause while clients are in the middle of a log-in, which takes some milliseconds; killPause is the pause
// when there were only clients to close, which PgBouncer does before it answers.
const (
	evictPause = 20 * time.Millisecond
	killPause  = time.Millisecond
)

// Evict closes the clients selected by who until none is left, and until none that was in the middle of its log-in when
// Evict began can still become one. Close the gate, or apply the allowlist, first: Evict does not keep new ones out. A
// log-in that hangs is ended by PgBouncer after 5 s (client_login_timeout), so Evict takes little longer than that.
func (c *Console) Evict(ctx context.Context, who Who) error {
	_, err := c.Expel(ctx, who)
	return err
}

// Expel is like Evict, and returns how many clients it closed.
func (c *Console) Expel(ctx context.Context, who Who) (closed int, err error) {
	gone := make(map[string]bool)
	pending, err := c.pendingOf(ctx, who)
	if err != nil {
		return 0, err
	}
	for {
		// In this order: a log-in that ends between the two looks is seen as a client by the second.
		if pending, err = c.stillPending(ctx, who, pending); err != nil {
			return len(gone), err
		}
		ids, err := c.closeOnce(ctx, who)
		if err != nil {
			return len(gone), err
		}
		for _, id := range ids {
			gone[id] = true
		}
		if len(ids) == 0 && len(pending) == 0 {
			return len(gone), nil
		}
		pause := killPause
		if len(pending) > 0 {
			pause = evictPause
		}
		select {
		case <-ctx.Done():
			return len(gone), fmt.Errorf("pooler: clients are still connected: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (c *Console) pendingOf(ctx context.Context, who Who) (map[string]bool, error) {
	all, err := c.PendingLogins(ctx)
	ids := make(map[string]bool)
	for _, p := range all {
		if who.possible(p) {
			ids[p.ID] = true
		}
	}
	return ids, err
}

// stillPending drops the clients that have gone or turned out not to match; a PgBouncer never reuses an ID.
func (c *Console) stillPending(ctx context.Context, who Who, before map[string]bool) (map[string]bool, error) {
	if len(before) == 0 {
		return before, nil
	}
	now, err := c.pendingOf(ctx, who)
	for id := range now {
		if !before[id] {
			delete(now, id)
		}
	}
	return now, err
}

// closeOnce returns the IDs of the clients that it closed.
func (c *Console) closeOnce(ctx context.Context, who Who) ([]string, error) {
	clients, err := c.Clients(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, client := range clients {
		if who.matches(client) {
			ids = append(ids, client.ID)
		}
	}
	return ids, c.KillClients(ctx, ids...)
}

// CloseAll closes all clients, and returns how many there were. It keeps nobody out.
func (c *Console) CloseAll(ctx context.Context) (closed int, err error) {
	ids, err := c.closeOnce(ctx, Everyone())
	return len(ids), err
}
