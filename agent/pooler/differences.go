package pooler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/command"
)

// Differences compares a state with the files that PgBouncer is to read, and with what it says of itself. A PgBouncer that does
// not answer is a difference too. It changes nothing.
func (p *Pooler) Differences(ctx context.Context, s State) ([]command.PoolerDifference, error) {
	stored, err := readStored(s.Settings.Dir)
	if err != nil {
		return nil, err
	}
	s.Lingering = goneFrom(s, stored.lines[kindEntries])
	files, err := Render(s)
	if err != nil {
		return nil, err
	}
	of := owners(s)
	found := compareFiles(of, files, stored)
	live, err := p.differencesLive(ctx, s, of, stored.mark)
	if errors.Is(err, ErrUnreachable) {
		what := "PgBouncer does not answer"
		if seen, _ := p.behindSocket(); seen == signOfHang {
			what = "PgBouncer hangs: its process is there, and does not answer"
		}
		return append(found, command.PoolerDifference{Where: command.PoolerDown, What: what}), nil
	}
	return append(found, live...), err
}

// owners says which database an entry or a login is of.
func owners(s State) map[string]string {
	of := map[string]string{}
	for _, e := range s.Entries {
		for _, name := range EntryNames(e.Database) {
			of[name] = e.Database
		}
		for _, l := range e.Logins {
			of[l.Name] = e.Database
		}
	}
	return of
}

// stored are the files as they stand: of the main file the mark and the lines that are the same for every state, and the lines
// of the parts that it names.
type stored struct {
	mark  string
	lines map[string]map[string]string // by kind of file, then by name
}

// The kinds of files, as a difference names them.
const (
	kindEntries  = "entry"
	kindLimits   = "limit"
	kindRules    = "rule"
	kindSettings = "setting"
)

// readStored reads what is on disk. A file that is missing has no lines.
func readStored(dir string) (stored, error) {
	main, err := readOrNone(filepath.Join(dir, mainFile))
	if err != nil {
		return stored{}, err
	}
	s := stored{lines: map[string]map[string]string{}}
	for line := range bytes.Lines(main) {
		if mark, ok := strings.CutPrefix(strings.TrimSpace(string(line)), markSetting+" = "); ok {
			s.mark = mark
		}
	}
	parts := map[string][]byte{}
	for kind, path := range partsOf(dir, main) {
		if parts[kind], err = readOrNone(path); err != nil {
			return s, err
		}
	}
	s.lines = linesOf(main, parts["databases"], parts["users"], parts["hba"])
	return s, nil
}

// partsOf are the paths of the parts that a main file names, by the kind of part.
func partsOf(dir string, main []byte) map[string]string {
	parts := map[string]string{}
	for word := range strings.FieldsSeq(string(main)) {
		name := filepath.Base(word)
		kind, _, _ := strings.Cut(name, "-")
		if filepath.Dir(word) == dir && ours.MatchString(name) {
			parts[kind] = word
		}
	}
	return parts
}

// storedEntries are the lines of [databases] on disk, by the names of the entries.
func storedEntries(dir string) (map[string]string, error) {
	main, err := readOrNone(filepath.Join(dir, mainFile))
	if err != nil {
		return nil, err
	}
	databases, err := readOrNone(partsOf(dir, main)["databases"])
	return linesOf(nil, databases, nil, nil)[kindEntries], err
}

func readOrNone(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// linesOf are the lines of files by what they are about. Left out is what differs between states that say the same: names of
// parts, the mark, the canary, and limits that were lifted.
func linesOf(main, databases, users, hba []byte) map[string]map[string]string {
	lines := map[string]map[string]string{kindEntries: {}, kindLimits: {}, kindRules: {}, kindSettings: {}}
	assigned := func(kind string, text []byte) {
		for line := range bytes.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimSpace(string(line)), " = ")
			if ok {
				lines[kind][name] = value
			}
		}
	}
	assigned(kindEntries, databases)
	assigned(kindLimits, users)
	maps.DeleteFunc(lines[kindLimits], func(_, value string) bool { return value == "max_user_connections=0" })
	assigned(kindSettings, main)
	for _, name := range []string{markSetting, "auth_file", "auth_hba_file"} {
		delete(lines[kindSettings], name)
	}
	for line := range bytes.Lines(hba) {
		if text := strings.TrimSpace(string(line)); text != "" && !strings.Contains(text, quoteDouble(canaryDatabase)) {
			lines[kindRules][text] = "there"
		}
	}
	return lines
}

func compareFiles(of map[string]string, files Files, has stored) (found []command.PoolerDifference) {
	parts := map[string][]byte{}
	for _, f := range files.Parts {
		kind, _, _ := strings.Cut(f.Name, "-")
		parts[kind] = f.Content
	}
	want := linesOf(files.Main.Content, parts["databases"], parts["users"], parts["hba"])
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		found = append(found, compareLines(command.PoolerFiles, kind, of, want[kind], has.lines[kind])...)
	}
	return found
}

// compareLines compares what two sides say of the same things. Neither side has a secret in it.
func compareLines(where, kind string, of, want, has map[string]string) (found []command.PoolerDifference) {
	all := maps.Clone(want)
	maps.Copy(all, has)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if want[name] != has[name] {
			found = append(found, command.PoolerDifference{
				Where: where, What: beginning(kind + " " + name), Database: databaseOf(of, kind, name),
				Want: beginning(want[name]), Has: beginning(has[name]),
			})
		}
	}
	return found
}

// beginning is the beginning of a line: a rule names all logins of its database.
func beginning(line string) string {
	const most = 200
	if len(line) > most {
		return line[:most] + "..."
	}
	return line
}

// databaseOf is the database that a line is about: a rule begins with its entries.
func databaseOf(of map[string]string, kind, name string) string {
	if kind == kindRules {
		if _, rest, ok := strings.Cut(name, `"`); ok {
			name, _, _ = strings.Cut(rest, `"`)
		}
	}
	return of[name]
}

// differencesLive compares a state with what PgBouncer shows, and its mark with that of the files.
func (c *Console) differencesLive(
	ctx context.Context, s State, of map[string]string, filesMark string,
) (found []command.PoolerDifference, err error) {
	mark, err := c.mark(ctx)
	if err != nil {
		return nil, err
	}
	if mark != filesMark {
		found = append(found, command.PoolerDifference{Where: command.PoolerLive, What: "mark", Want: filesMark, Has: mark})
	}
	entries, err := c.differentEntries(ctx, s, of)
	if err != nil {
		return nil, err
	}
	found = append(found, entries...)
	limits, shown, err := c.shownLimits(ctx, s)
	if err != nil {
		return nil, err
	}
	return append(found, compareLines(command.PoolerLive, kindLimits, of, limits, shown)...), nil
}

// String is the entry as a difference shows it.
func (e entry) String() string {
	return fmt.Sprintf("%s of %s at %s:%d, pool_size=%d, max_db_connections=%d", e.mode, e.database, e.host, e.port, e.poolSize,
		e.maxServers)
}

// differentEntries compares a state's entries with those that PgBouncer shows.
func (c *Console) differentEntries(ctx context.Context, s State, of map[string]string) ([]command.PoolerDifference, error) {
	want, has := map[string]string{}, map[string]string{}
	for _, e := range s.Entries {
		for _, x := range entriesOf(s.Settings, e) {
			want[x.name] = x.String()
		}
	}
	for _, x := range s.lingeringEntries() {
		want[x.name] = x.String()
	}
	err := c.each(ctx, "SHOW DATABASES", func(r row) error {
		shown := entry{
			name: r.text("name"), database: r.text("database"), mode: r.text("pool_mode"),
			poolSize: int(r.number("pool_size")), maxServers: int(r.number("max_connections")),
			host: r.text("host"), port: int(r.number("port")),
		}
		if shown.name != adminDatabase && shown.name != s.Settings.MaintenanceDatabase {
			has[shown.name] = shown.String()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return compareLines(command.PoolerLive, kindEntries, of, want, has), nil
}

// shownLimits are the limits of the state's logins, as wanted and as PgBouncer shows them. It never forgets a login that it has
// seen, and shows none before it has: both are as they should be.
func (c *Console) shownLimits(ctx context.Context, s State) (want, has map[string]string, err error) {
	limits := map[string]int64{}
	want, has = map[string]string{}, map[string]string{}
	for _, e := range s.Entries {
		for _, l := range e.Logins {
			limits[l.Name] = int64(l.MaxConnections)
			if l.MaxConnections > 0 {
				want[l.Name] = strconv.Itoa(l.MaxConnections)
			}
		}
	}
	err = c.each(ctx, "SHOW USERS", func(r row) error {
		name, limit := r.text("name"), r.number("max_user_connections")
		if _, known := limits[name]; known && limit != 0 && !slices.Contains(c.ownUsers(), name) {
			has[name] = strconv.FormatInt(limit, 10)
		}
		return nil
	})
	return want, has, err
}
