package command

// AskCapabilities asks an agent what it is and knows. It answers while PostgreSQL is down too.
type AskCapabilities struct {
	Returns[Capabilities] `json:"-"`
}

// Capabilities names the agent's version and protocol, its routes, and the programs that it works with.
type Capabilities struct {
	Version string `json:"version"`
	// Protocol is the agent's; see the constant. These two stay as they are in every protocol.
	Protocol int       `json:"protocol"`
	Routes   []string  `json:"routes"`
	Programs []Program `json:"programs"`
	// Connections is how many connections the customers' databases can have together: max_connections without what is kept for
	// superusers, for the agent and for PgBouncer's own questions. It is left out while PostgreSQL does not answer.
	Connections int `json:"connections,omitempty"`
	// Installation tells the server that the agent is in charge of from every other one, by whichever address it is reached. It is
	// left out as Connections is.
	Installation string `json:"installation,omitempty"`
	// PostgresVersion is the major version of PostgreSQL. It is left out until PostgreSQL has answered once.
	PostgresVersion int `json:"postgresVersion,omitempty"`
	// SlowQueries says that PostgreSQL collects what the question of that name asks for. It is left out as Connections is.
	SlowQueries bool `json:"slowQueries,omitempty"`
	// Storage is where this agent keeps backups, as Inherit has it: what keys of objects begin with, or a folder.
	Storage string `json:"storage,omitempty"`
	// PublicCA are the certificates in PEM of PgBouncer's certificate file: whoever is to know this PgBouncer compares what it shows
	// with these. It is left out while the file cannot be read.
	PublicCA string `json:"publicCa,omitempty"`
	// NotLogical says why a database can move to and from the server only while customers are kept out of it; empty: it can while it
	// serves. It is left out as Connections is.
	NotLogical string `json:"notLogical,omitempty"`
	// Archive is nil where none is kept of the server.
	Archive *Archive `json:"archive,omitempty"`
	// State is what the agent knows of its server without looking.
	State ServerState `json:"state"`
	// Reasons say why the server is not well: those of the health report that are not harmless, each a code and a line.
	Reasons []string `json:"reasons,omitempty"`
}

// ServerState says which of a server's parts work.
type ServerState struct {
	InCharge  bool `json:"inCharge"`  // the agent is in charge of the server and has confirmed that within ten seconds
	Postgres  bool `json:"postgres"`  // PostgreSQL answers the agent
	PgBouncer bool `json:"pgbouncer"` // PgBouncer answered when the agent last looked
}

// Program is PostgreSQL, PgBouncer or pg_dump on the agent's server.
type Program struct {
	Name string `json:"name"`
	// Version is what the program says of itself; empty until it has answered.
	Version string `json:"version"`
	// Floor is the oldest version of the same series without known holes.
	Floor string `json:"floor"`
	// BelowFloor says that the version is older than that. Holes are then the identifiers of what is known of it, and Accepted
	// says that the operator has accepted this very version.
	BelowFloor bool     `json:"belowFloor"`
	Accepted   bool     `json:"accepted"`
	Holes      []string `json:"holes"`
}

// Route implements Question.
func (AskCapabilities) Route() Route { return Route{Method: "GET", Path: "/v1/capabilities"} }

// Check implements Question.
func (AskCapabilities) Check() error { return nil }
