package versions

// Floor is the oldest release of one series of a program that closes the named holes.
type Floor struct {
	Least Number
	Holes []Hole
}

// Hole is a published weakness that a floor closes: its identifiers, and what it lets whom do.
type Hole struct{ ID, Lets string }

// floors holds the floors of each program, one for each series (the first number of a version), in ascending order. Whoever
// raises one names the hole that the new one closes.
var floors = map[Program][]Floor{
	PostgreSQL: {
		{Least: Number{16, 16}, Holes: []Hole{
			{"CVE-2026-6460", "a login that can create objects run code as the server's system user"},
			{"CVE-2026-14669, -14680, -15742, -16239", "any login run code as the server's system user"},
		}},
	},
	PgBouncer: {
		{Least: Number{1, 26, 1}, Holes: []Hole{
			{"CVE-2026-107349", "anybody who can connect stop it by one start-up packet, unless its settings are the agent's"},
			{"CVE-2026-107350", "whoever knows a password of auth_file log in as any other user"},
			{"CVE-2026-19888, -6664", "anybody who can connect crash it by one packet"},
			{"CVE-2026-6668", "anybody who can connect stop it by a very large packet, unless its settings are the agent's"},
			{"CVE-2026-6665, -6666, -6669", "a PostgreSQL server crash or stop it"},
			{"CVE-2026-6667", "users of its console without the right to do so close connections"},
		}},
	},
	// Customers give the files that pg_dump writes to psql.
	PgDump: {
		{Least: Number{16, 15}, Holes: dumpHoles},
		{Least: Number{17, 11}, Holes: dumpHoles},
		{Least: Number{18, 6}, Holes: dumpHoles},
	},
}

var dumpHoles = []Hole{
	{"CVE-2025-8714, -8715", "a dumped database run code where its dump is restored"},
	{"CVE-2026-18408", "a superuser of a dumped server do so in spite of the fix of CVE-2025-8714"},
	{"CVE-2026-6477", "a superuser of a dumped server overwrite pg_dump's memory"},
}
