package pooler

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/database"
)

// File is one rendered file, named within Settings.Dir.
type File struct {
	Name    string
	Content []byte
}

// Files is a rendered state. Every part except the main file is named after its content, so renaming the main file switches all
// parts at once, and a PgBouncer that starts during a change sees either the old state or the new one.
type Files struct {
	Parts []File
	Main  File
	// Mark names this state; SHOW CONFIG shows it once the whole main file has been read.
	Mark string
	// Canary names the HBA file; see canaryDatabase.
	Canary string
}

// mainFile is the only name that does not change.
const mainFile = "pgbouncer.ini"

// markSetting carries the mark. It is a text that PgBouncer loads on reload and, with syslog off, does not use.
const markSetting = "syslog_ident"

// ConfigFile is the file to start PgBouncer with.
func ConfigFile(dir string) string { return filepath.Join(dir, mainFile) }

// Render writes a state as PgBouncer's files. It is pure: equal states give equal files, in whatever order they list things. It
// returns ErrUnwritable for a state with a name, network, limit or setting that must not reach a file.
func Render(s State) (Files, error) {
	if err := checkState(s); err != nil {
		return Files{}, err
	}
	entries := descending(s.Entries)
	databases := part("databases", ".ini", renderDatabases(s.Settings, entries, s.lingeringEntries()))
	users := part("users", ".ini", renderUsers(s))
	accounts := part("accounts", ".txt", renderAccounts(s.Settings))
	rules := append(renderRules(entries), outsideRule(s.Settings)...)
	canary := fingerprint(rules)
	hba := File{Name: "hba-" + canary + ".conf", Content: append(rules, localRules(canary)...)}
	parts := []File{databases, users, accounts, hba}

	main := renderMain(s.Settings, databases.Name, users.Name, accounts.Name, hba.Name)
	mark := "pgherd-" + fingerprint(main)
	main = fmt.Appendf(main, "%s = %s\n", markSetting, mark)
	return Files{Parts: parts, Main: File{Name: mainFile, Content: main}, Mark: mark, Canary: canary}, nil
}

func part(name, suffix string, content []byte) File {
	return File{Name: name + "-" + fingerprint(content) + suffix, Content: content}
}

func fingerprint(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:12])
}

// descending sorts by name, last first: PgBouncer keeps sorted lists and inserts from the front, so ascending files take
// quadratic time (48 s in place of 0.3 s for 5,000 databases and 30,000 logins).
func descending(entries []Entry) []Entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Compare(b.Database, a.Database) })
	return sorted
}

func descendingLogins(logins []Login) []Login {
	sorted := slices.Clone(logins)
	slices.SortFunc(sorted, func(a, b Login) int { return cmp.Compare(b.Name, a.Name) })
	return sorted
}

// entry is one line of [databases], as SHOW DATABASES reports it.
type entry struct {
	name, database, mode string
	poolSize, maxServers int
	host                 string // an address or a folder of sockets
	port                 int
}

// entriesOf returns both entries of a database, the later name first.
func entriesOf(s Settings, e Entry) [2]entry {
	limit, maxSession, maxTransaction := e.ConnectionCap, 0, 0
	if limit == 0 {
		limit = s.UncappedPoolSize
	}
	session, transaction := Shares(limit)
	if e.ConnectionCap > 0 {
		maxSession, maxTransaction = session, transaction
	}
	name, host, port := e.Database+TransactionSuffix, s.ServerHost, s.ServerPort
	inTransaction := e.Database // what the second entry is at the server
	if e.Elsewhere != (Socket{}) {
		inTransaction, host, port = name, e.Elsewhere.Dir, e.Elsewhere.Number
	}
	return [2]entry{
		{name, inTransaction, "transaction", transaction, maxTransaction, host, port},
		{e.Database, e.Database, "session", session, maxSession, host, port},
	}
}

func renderDatabases(s Settings, entries []Entry, lingering []entry) []byte {
	lines := make([]dbLine, 0, 2*len(entries)+len(lingering)+1)
	lines = append(lines, dbLine{s.MaintenanceDatabase, fmt.Sprintf("host=%s port=%d dbname=%s pool_mode=session pool_size=%d",
		quoteValue(s.ServerHost), s.ServerPort, quoteValue(s.MaintenanceDatabase), database.VerifierConnections)})
	for _, e := range entries {
		secret := fmt.Sprintf("SELECT login, secret FROM pooler.login_secret($1, %s)", quoteValue(e.Database))
		for _, x := range entriesOf(s, e) {
			lines = append(lines, x.line(s.MaintenanceDatabase, " auth_query="+quoteValue(secret)))
		}
	}
	for _, x := range lingering {
		lines = append(lines, x.line(goneDatabase, ""))
	}
	// "a-b" sorts between "a" and "a.transaction", so the entries must be sorted, not the databases.
	slices.SortFunc(lines, func(a, b dbLine) int { return cmp.Compare(b.name, a.name) })
	var out bytes.Buffer
	out.WriteString("[databases]\n")
	for _, l := range lines {
		out.WriteString(l.name + " = " + l.values + "\n")
	}
	return out.Bytes()
}

type dbLine struct{ name, values string }

// line is the entry's line, with the entry at which verifiers are asked for, and how.
func (e entry) line(authDatabase, query string) dbLine {
	return dbLine{e.name, fmt.Sprintf("host=%s port=%d dbname=%s pool_mode=%s pool_size=%d max_db_connections=%d auth_dbname=%s%s",
		quoteValue(e.host), e.port, quoteValue(e.database), e.mode, e.poolSize, e.maxServers, quoteValue(authDatabase), query)}
}

// renderAccounts writes the auth_file: only the two accounts of the platform, never a customer's login.
func renderAccounts(s Settings) []byte {
	return fmt.Appendf(nil, "%s %s\n%s %s\n",
		quoteDouble(s.AdminUser), quoteDouble(s.AdminPassword), quoteDouble(s.AuthUser), quoteDouble(s.AuthPassword))
}

// quoteValue quotes a value of a connection string: the only special character is the quote, which is doubled.
func quoteValue(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// quoteDouble quotes a word of the auth_file or of the HBA file.
func quoteDouble(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
