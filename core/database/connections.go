package database

// The connections of a server, max_connections of its PostgreSQL, have four uses. A server is oversold where they are not enough:
//
//	max_connections >= superuser_reserved_connections + reserved_connections + VerifierConnections
//	                 + for each database that is in service: its connection cap + SpareConnections
//
// A database without a cap counts as UncappedConnections, and OverlayConnections more from its opt-in for additional roles on.
// reserved_connections are the agent's own, and 10 at least. With PostgreSQL's defaults and 10, that is 17 and the databases.

// SpareConnections are those of a database, above its cap, that are left to the agent, as for a dump and its counts.
const SpareConnections = 5

// UncappedConnections is what the pooler opens at most for the owner of a database that has no cap.
const UncappedConnections = 60

// OverlayConnections is what it opens at most for the additional roles of such a database together: three, with 20 each.
const OverlayConnections = 60

// VerifierConnections are those on which the pooler asks for the verifiers of customers' logins.
const VerifierConnections = 4

// Sold is how many connections of its server a database can take: its cap and the agent's spare ones. One without a cap, 0,
// counts with what the pooler opens for its owner and, once it has opted in for additional roles, for those.
func Sold(limit int, optedIn bool) int {
	switch {
	case limit == 0 && optedIn:
		limit = UncappedConnections + OverlayConnections
	case limit == 0:
		limit = UncappedConnections
	}
	return limit + SpareConnections
}

// ReservedConnections is how many connections of its server the database can take.
func (r Record) ReservedConnections() int { return Sold(r.ConnectionCap, r.OverlayID != "") }

// ServerConnections are PostgreSQL's settings of these names.
type ServerConnections struct{ Max, SuperuserReserved, Reserved int }

// ForDatabases is how many connections the databases of the server can have together.
func (c ServerConnections) ForDatabases() int { return max(0, c.Max-c.others()) }

// MaxFor is the max_connections that the server needs for databases with so many connections together.
func (c ServerConnections) MaxFor(sold int) int { return sold + c.others() }

func (c ServerConnections) others() int {
	return c.SuperuserReserved + c.Reserved + VerifierConnections
}
