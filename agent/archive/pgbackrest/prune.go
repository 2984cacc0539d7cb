package pgbackrest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the program's own checksum
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Where some databases are restored, the program makes a file without content for each of the others, of the same size. Each
// costs as much as one with content, and a server of 1,000 databases has 300,000. A pruned manifest lacks them. The large ones
// are made all the same: where the replay changes a page of a file that is not there, the server fills the file with zeros up to
// that page, and those take room.

// largeFile is the size, in bytes, of a large one. An empty database has none.
const largeFile = 1 << 20

// hole is a large file of a database that is left out.
type hole struct {
	path string // within the data directory
	size int64
}

// firstUserOID is the OID from which databases are those of users.
const firstUserOID = 16384

// manifestFormat is the only one that is pruned.
const manifestFormat = "5"

// manifest prunes the list that the program keeps of a copy's files, which it hears line by line. It is text in sections, of keys
// with values in JSON, and ends with a checksum over all of them, as if they were one object in JSON.
type manifest struct {
	whole map[uint32]bool // the databases that are restored

	section        string
	hasFormat      bool
	hasDatabases   bool
	original, kept checksum
	claimed        string // the checksum that it says it has
	text           bytes.Buffer
	holes          []hole
	err            error
}

func newManifest(databases []uint32) *manifest {
	m := &manifest{whole: make(map[uint32]bool), original: newChecksum(), kept: newChecksum()}
	for _, oid := range databases {
		m.whole[oid] = true
	}
	return m
}

const (
	sectionProgram   = "backrest"
	sectionDatabases = "db"
	sectionFiles     = "target:file"
	keyChecksum      = "backrest-checksum"
	keyFormat        = "backrest-format"
)

// line takes the next line.
func (m *manifest) line(line string) {
	if m.err != nil {
		return
	}
	if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
		m.section = line[1 : len(line)-1]
		m.write(line)
		return
	}
	if line == "" {
		m.write(line)
		return
	}
	key, value, ok := keyValue(line)
	if !ok || m.section == "" {
		m.err = fmt.Errorf("a line in the section %q is not a key with a value", m.section)
		return
	}
	if m.section == sectionProgram && key == keyChecksum {
		m.claimed = value
		return
	}
	m.original.add(m.section, key, value)
	keep, err := m.keeps(key, value)
	switch {
	case err != nil:
		m.err = err
	case keep:
		m.kept.add(m.section, key, value)
		m.write(line)
	}
}

func (m *manifest) write(line string) {
	m.text.WriteString(line)
	m.text.WriteByte('\n')
}

// keeps reports whether a key stays.
func (m *manifest) keeps(key, value string) (bool, error) {
	switch m.section {
	case sectionProgram:
		if key == keyFormat {
			m.hasFormat = value == manifestFormat
		}
	case sectionDatabases:
		m.hasDatabases = true
		if systemDatabase(key) {
			oid, err := number(value, "db-id")
			m.whole[uint32(oid)] = true
			return true, err
		}
	case sectionFiles:
		if !m.hasFormat || !m.hasDatabases { // they come first
			return false, errors.New("it is of another format")
		}
		oid, path, ok := databaseFile(key)
		if !ok || oid < firstUserOID || m.whole[oid] {
			return true, nil
		}
		size, err := number(value, "size")
		if size >= largeFile {
			m.holes = append(m.holes, hole{path, size})
		}
		return false, err
	}
	return true, nil
}

// systemDatabase reports whether the program takes a database of that name for the server's own, and restores it always.
func systemDatabase(name string) bool {
	return slices.Contains([]string{"postgres", "template0", "template1"}, name)
}

// databaseFile is of which database a file is, and its path within the data directory.
func databaseFile(key string) (oid uint32, path string, ok bool) {
	parts := strings.Split(key, "/")
	path = strings.TrimPrefix(key, "pg_data/")
	switch {
	case len(parts) == 4 && parts[0] == "pg_data" && parts[1] == "base": // pg_data/base/16384/1259
	case len(parts) == 5 && parts[0] == "pg_tblspc": // pg_tblspc/16400/PG_16_202307071/16384/1259
	default:
		return 0, "", false
	}
	n, err := strconv.ParseUint(parts[len(parts)-2], 10, 32)
	return uint32(n), path, err == nil && filepath.IsLocal(path)
}

// number reads one number of an object without the rest, of which there is much.
func number(value, name string) (int64, error) {
	for _, before := range []string{`{"`, `,"`} {
		if _, after, found := strings.Cut(value, before+name+`":`); found {
			return strconv.ParseInt(after[:len(after)-len(strings.TrimLeft(after, "0123456789"))], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is something without %s", name)
}

// keyValue parts a line. Keys may have an "=": a value is what is JSON.
func keyValue(line string) (key, value string, ok bool) {
	for at := 0; ; at++ {
		next := strings.IndexByte(line[at:], '=')
		if next < 0 {
			return "", "", false
		}
		at += next
		if value = line[at+1:]; !strings.Contains(value, "=") || json.Valid([]byte(value)) {
			return line[:at], value, at > 0 && value != ""
		}
	}
}

// pruned is the text without what is left out, once all lines were taken. An error says that the manifest is not understood.
func (m *manifest) pruned() ([]byte, error) {
	if m.err != nil {
		return nil, m.err
	}
	if sum := m.original.sum(); m.claimed != sum || m.section != sectionProgram {
		return nil, fmt.Errorf("it has the checksum %s, and not %s at its end", sum, m.claimed)
	}
	m.write(keyChecksum + "=" + m.kept.sum())
	return m.text.Bytes(), nil
}

// checksum is that of sections with keys and values, as the program makes it.
type checksum struct {
	of      hash.Hash
	section string
	next    []byte
}

func newChecksum() checksum { return checksum{of: sha1.New()} } //nolint:gosec // the program's own checksum

func (c *checksum) add(section, key, value string) {
	b := c.next[:0]
	switch {
	case c.section == "":
		b = append(b, '{')
	case c.section != section:
		b = append(b, "},"...)
	default:
		b = append(b, ',')
	}
	if c.section != section {
		b = append(b, '"')
		b = append(b, section...)
		b = append(b, `":{`...)
		c.section = section
	}
	b = append(b, '"')
	b = append(b, escaped.Replace(key)...)
	b = append(b, `":`...)
	b = append(b, value...)
	_, _ = c.of.Write(b) // a hash has no errors
	c.next = b
}

// escaped is how the program writes strings in JSON.
var escaped = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)

// sum is the checksum as a value.
func (c *checksum) sum() string {
	_, _ = c.of.Write([]byte("}}"))
	return `"` + hex.EncodeToString(c.of.Sum(nil)) + `"`
}
