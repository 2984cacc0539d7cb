package pooler

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/pgherd/pgherd/core/database"
)

// TransactionSuffix makes the name of a database's second entry, which is pooled by transaction.
const TransactionSuffix = ".transaction"

// State is the complete desired state of PgBouncer.
type State struct {
	Settings Settings
	Entries  []Entry
	// Lingering names the databases without an Entry whose entries PgBouncer still needs. A Pooler finds them itself.
	Lingering []string
	// Lifted names the logins without a limit whose earlier limit PgBouncer must be told to lift. A Pooler finds them itself.
	Lifted []string
}

// Entry is one managed database.
type Entry struct {
	// Database is the name in PostgreSQL and of the first entry: lower-case letters, digits, hyphens and underscores, at most 51.
	Database string
	// ConnectionCap bounds the server connections over both entries; 0 means that the database has no cap of its own, and
	// Settings.UncappedPoolSize bounds each login in its place.
	ConnectionCap int
	// Allow lists the client networks; empty means any address.
	Allow []netip.Prefix
	// Welcome are further addresses that clients may come from: those of servers that have asked their own allowlist.
	Welcome []netip.Addr
	// Logins may connect to this database and to no other.
	Logins []Login
	// Elsewhere is the socket that leads to the server that has the database, at which PgBouncer asks for the entries of the same
	// names; zero: it is in this server's PostgreSQL.
	Elsewhere Socket
}

// Socket is a unix socket as PostgreSQL's clients name it.
type Socket struct {
	Dir string
	// Number is what its name ends with, as if it were a port: from 1 to 65535.
	Number int
}

// ForwardSocket is a socket of the agent's that leads to another server: beside the files, where PgBouncer gets to.
func (s Settings) ForwardSocket(number int) Socket {
	return Socket{filepath.Join(s.Dir, "forward"), number}
}

// Path is the file of the socket.
func (s Socket) Path() string { return filepath.Join(s.Dir, fmt.Sprintf(".s.PGSQL.%d", s.Number)) }

// Login is a customer's login of one database.
type Login struct {
	// Name is the PostgreSQL role: lower-case letters, digits, hyphens and underscores, at most 63.
	Name string
	// MaxConnections bounds its server connections over both entries; 0 means no limit of its own.
	MaxConnections int
}

// Settings are independent of databases. PgBouncer must be restarted after a change of an address, a port or the socket folder.
type Settings struct {
	// Dir is the folder of the rendered files; PgBouncer is started with ConfigFile(Dir).
	Dir string
	// SocketDir holds PgBouncer's unix socket. Log-ins through it bypass the allowlist, so only the agent may reach it.
	SocketDir string
	// GroupSocket lets PgBouncer's group connect to the socket: for an agent of that group that is another user.
	GroupSocket bool
	// ListenAddresses and ListenPort are where customers connect, with TLS only.
	ListenAddresses []string
	ListenPort      int
	// Outside is where the agent comes in as customers do, and from which it does: an address that PgBouncer listens on (OutsideOf).
	// Where it is not valid, nothing of the agent's comes in there.
	Outside netip.Addr
	// TLSCertFile and TLSKeyFile are PEM files that PgBouncer can read.
	TLSCertFile, TLSKeyFile string
	// ServerHost is PostgreSQL's loopback address or its socket folder.
	ServerHost string
	ServerPort int
	// MaintenanceDatabase holds the pooler schema (SchemaSQL); AuthUser asks it for verifiers.
	MaintenanceDatabase string
	AuthUser            string
	AuthPassword        string
	// AdminUser may use the admin console.
	AdminUser     string
	AdminPassword string
	// MaxClients bounds all clients, MaxDatabaseClients those of one entry.
	MaxClients, MaxDatabaseClients int
	// MaxPacket bounds, in bytes, one message of a client and one row of a result, from 1 MiB to MostPacket. PgBouncer is one
	// thread: while it copies a log-in's first message, or a statement to be prepared, of 1 GiB, nobody else is served for seconds.
	MaxPacket int
	// UncappedPoolSize is the pool size of entries without a cap.
	UncappedPoolSize int
	// ResetAlways runs DISCARD ALL after each transaction too. Without it, clients of the second entry see each other's
	// prepared statements, advisory locks and search_path.
	ResetAlways bool
	// LogFile and PIDFile may be empty: PgBouncer then logs to standard error and writes no process ID.
	LogFile, PIDFile string
}

// MostPacket closes CVE-2026-6668 on PgBouncer before 1.26. With the default of PgBouncer, a log-in's message of almost 2 GiB
// makes it write beyond a buffer and crash, and a prepared statement of more than 1 GiB makes it hang for good. PostgreSQL itself
// takes no message of a client beyond 1 GiB - 1. The 64 bytes are for the name that PgBouncer gives a prepared statement in place
// of the client's: with that name, too, it must stay within 1 GiB.
const (
	LeastPacket = 1 << 20
	MostPacket  = 1<<30 - 64
)

// DefaultSettings returns the settings that have a sensible value on every server; the caller fills in the rest.
func DefaultSettings() Settings {
	return Settings{
		ListenAddresses:     []string{"127.0.0.1"},
		Outside:             netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		ListenPort:          6432,
		ServerHost:          "127.0.0.1",
		ServerPort:          5432,
		MaintenanceDatabase: "pgherd",
		AuthUser:            "pgherd_pooler",
		AdminUser:           "pgherd_pooler_admin",
		MaxClients:          10_000,
		MaxDatabaseClients:  2_000,
		MaxPacket:           64 << 20,
		UncappedPoolSize:    database.UncappedConnections,
		ResetAlways:         true,
	}
}

// EntryNames returns the two entries of a database.
func EntryNames(database string) []string {
	return []string{database, database + TransactionSuffix}
}

// Shares divides a connection cap between the two entries: a quarter for transaction pooling, the rest for session pooling,
// each at least 1. A cap of 1 thus gives 1 and 1.
func Shares(limit int) (session, transaction int) {
	transaction = max(1, limit/4)
	return max(1, limit-transaction), transaction
}

// String leaves the passwords out, so that settings may stand in a log or an error.
func (s Settings) String() string {
	return fmt.Sprintf("PgBouncer at %s:%d, files in %s", strings.Join(s.ListenAddresses, ","), s.ListenPort, s.Dir)
}

// GoString is String.
func (s Settings) GoString() string { return s.String() }

// lines is about how many lines PgBouncer reads: two for each database, and one for each login.
func (s State) lines() int {
	n := 2 * len(s.Lingering)
	for _, e := range s.Entries {
		n += 2 + len(e.Logins)
	}
	return n
}
