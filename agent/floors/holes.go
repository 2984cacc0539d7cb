package floors

import (
	"fmt"
	"strings"
)

// Floor is the oldest release of one series of a program that closes the named holes.
type Floor struct {
	Least Number
	Holes []Hole
}

// Hole is what published weaknesses that a floor closes let somebody do.
type Hole struct {
	IDs  []string
	Lets string
}

func (h Hole) String() string {
	lets := " lets "
	if len(h.IDs) > 1 {
		lets = " let "
	}
	return strings.Join(h.IDs, ", ") + lets + h.Lets
}

func cve(numbers ...string) []string {
	names := make([]string, 0, len(numbers))
	for _, n := range numbers {
		names = append(names, "CVE-"+n)
	}
	return names
}

// issues are those of pgBackRest's tracker.
func issues(numbers ...int) []string {
	names := make([]string, 0, len(numbers))
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("%s #%d", PgBackRest, n))
	}
	return names
}

// floors holds the floors of each program, one for each series (the first number of a version), in ascending order. Whoever
// raises one names the hole that the new one closes.
var floors = map[Program][]Floor{
	PostgreSQL: {
		{Least: Number{16, 16}, Holes: serverHoles},
		{Least: Number{17, 12}, Holes: serverHoles},
		{Least: Number{18, 7}, Holes: serverHoles},
	},
	PgBouncer: {
		{Least: Number{1, 26, 1}, Holes: []Hole{
			{cve("2026-107349"), "anybody who can connect stop it by one start-up packet, unless its settings are the agent's"},
			{cve("2026-107350"), "whoever knows a password of auth_file log in as any other user"},
			{cve("2026-19888", "2026-6664"), "anybody who knows a database and its login crash it without a password"},
			{cve("2026-6668"), "anybody who can connect stop it by a very large packet, unless its settings are the agent's"},
			{cve("2026-6665", "2026-6666", "2026-6669"), "a PostgreSQL server crash or stop it"},
			{cve("2026-6667"), "users of its console without the right to do so close connections"},
		}},
	},
	// Nobody has numbered its holes; its issues are.
	PgBackRest: {
		{Least: Number{2, 59, 2}, Holes: []Hole{
			{issues(2829), "a login that empties a large table during a backup stop all incremental backups until the next full one"},
			{issues(2818), "a backup to an object store hang, with 2.58.0 and 2.59.0"},
			{issues(2710), "a backup that is told to end hang"},
			{issues(2182, 2215, 2271), "a restore from an incremental backup fail"},
		}},
	},
	// Customers give the files that pg_dump writes to psql.
	PgDump: {
		{Least: Number{16, 15}, Holes: dumpHoles},
		{Least: Number{17, 11}, Holes: dumpHoles},
		{Least: Number{18, 6}, Holes: dumpHoles},
	},
}

var serverHoles = []Hole{
	{cve("2026-6460"), "a login that can create objects run code as the server's system user"},
	{cve("2026-14669", "2026-14680", "2026-15742", "2026-16239", "2026-120141"), "any login run code as the server's system user"},
	{cve("2026-14678"), "a login guess pieces of the server's memory, with an index of pg_trgm"},
}

var dumpHoles = []Hole{
	{cve("2025-8714", "2025-8715"), "a dumped database run code where its dump is restored"},
	{cve("2026-18408"), "a superuser of a dumped server do so in spite of the fix of CVE-2025-8714"},
	{cve("2026-6477"), "a superuser of a dumped server overwrite pg_dump's memory"},
}
