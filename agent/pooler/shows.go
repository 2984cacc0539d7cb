package pooler

import (
	"context"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/usage"
)

// adminDatabase is PgBouncer's name for its console.
const adminDatabase = "pgbouncer"

// Client is one line of SHOW CLIENTS: a client that is logged in.
type Client struct {
	ID              string
	Entry, Login    string
	State           string
	Linked          bool       // has a server connection
	Address         netip.Addr // not valid for a client of the unix socket
	ApplicationName string     // at most longestName bytes of it
	ConnectedAt     time.Time
	RequestedAt     time.Time // when it last sent something
}

// idle reports whether a client is between transactions and holds nothing on the server. Before 1.25 PgBouncer says "active" of
// one, as of one that works; later versions say "idle".
func (c Client) idle() bool { return !c.Linked && (c.State == "active" || c.State == "idle") }

// waiting reports whether a client waits for a server connection, for the first or for its next transaction.
func (c Client) waiting() bool { return !c.Linked && c.State == "waiting" }

// Memory is what PgBouncer's process has, in bytes.
type Memory struct {
	Resident int64
	// Private is what it has asked for, used or not. Where memory is not overcommitted, others cannot have it.
	Private int64
}

// Pool is one line of SHOW POOLS: the clients and server connections of one login at one entry.
type Pool struct {
	protocol.PgBouncerPool
	Waited time.Duration // how long the first client that waits has
}

// Pools returns the pools of all entries but the console.
func (c *Console) Pools(ctx context.Context) ([]Pool, error) {
	pools := []Pool{}
	err := c.each(ctx, "SHOW POOLS", func(r row) error {
		p := Pool{PgBouncerPool: protocol.PgBouncerPool{
			Database: r.text("database"), User: r.text("user"),
			ClientActive: r.number("cl_active"), ClientWaiting: r.number("cl_waiting"),
			ServerActive: r.number("sv_active"), ServerIdle: r.number("sv_idle"),
		}}
		p.Waited = time.Duration(r.number("maxwait"))*time.Second + time.Duration(r.number("maxwait_us"))*time.Microsecond
		if p.Database != adminDatabase {
			pools = append(pools, p)
		}
		return nil
	})
	return pools, err
}

// Counters returns what PgBouncer has counted at each entry since it began. An entry that nobody has used may be missing.
func (c *Console) Counters(ctx context.Context) (map[string]usage.Counters, error) {
	counted := map[string]usage.Counters{}
	err := c.each(ctx, "SHOW STATS", func(r row) error {
		counted[r.text("database")] = usage.Counters{Queries: r.number("total_query_count"), WaitUs: r.number("total_wait_time")}
		return nil
	})
	return counted, err
}

// Clients returns the clients of all entries but the console, without the agent's own that look at the customers' port.
func (c *Console) Clients(ctx context.Context) ([]Client, error) {
	clients := []Client{}
	err := c.each(ctx, "SHOW CLIENTS", func(r row) error {
		if client := clientOf(r); client.Entry != adminDatabase && client.Login != c.settings.AuthUser {
			clients = append(clients, client)
		}
		return nil
	})
	return clients, err
}

// Pending is a client in the middle of its log-in. SHOW CLIENTS does not have it.
type Pending struct {
	ID string
	// Login and Entry are empty if PgBouncer does not report them.
	Login, Entry string
}

// PendingLogins returns the clients in the middle of a log-in, in `cl_login`. While its verifier is being queried, a client is
// listed at the maintenance database's entry, whatever its own is. A client without an entry has not yet said who it is: its
// verifier has not been queried, so a closed gate keeps it out, and nobody needs to wait for it.
func (c *Console) PendingLogins(ctx context.Context) ([]Pending, error) {
	var pending []Pending
	err := c.each(ctx, "SHOW SOCKETS", func(r row) error {
		nameless := r.text("user") == "(nouser)"
		logsIn := r.text("state") == "cl_login" || r.text("type") == "C" && nameless
		if !logsIn || r.text("database") == "(nodb)" {
			return nil
		}
		p := Pending{ID: r.text("id"), Login: r.text("user"), Entry: r.text("database")}
		if nameless {
			p.Login = ""
		}
		if p.Entry == c.settings.MaintenanceDatabase {
			p.Entry = ""
		}
		if p.Login == c.settings.AuthUser { // the agent's own: nobody waits for it
			return nil
		}
		pending = append(pending, p)
		return nil
	})
	return pending, err
}

func clientOf(r row) Client {
	address, _ := netip.ParseAddr(r.text("addr")) // "unix" is no address
	// PgBouncer reports local time, and runs on the agent's machine.
	at := func(column string) time.Time {
		t, _ := time.ParseInLocation("2006-01-02 15:04:05 MST", r.text(column), time.Local)
		return t
	}
	return Client{
		ID: r.text("id"), Entry: r.text("database"), Login: r.text("user"), State: r.text("state"),
		Linked: r.text("link") != "", Address: address.Unmap(), ApplicationName: cut(r.text("application_name")),
		ConnectedAt: at("connect_time"), RequestedAt: at("request_time"),
	}
}

// longestName is how many bytes PostgreSQL keeps of a name. PgBouncer keeps whatever its client sends as application_name.
const longestName = 63

// cut shortens a name as PostgreSQL does, between two characters. What is cut off is not kept in memory.
func cut(name string) string {
	if len(name) <= longestName {
		return name
	}
	n := longestName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return strings.Clone(name[:n])
}
