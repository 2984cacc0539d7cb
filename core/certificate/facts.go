package certificate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Facts are what a document takes from the backup's manifest.
type Facts struct {
	FormatVersion  int
	DatabaseID     id.DatabaseID
	Filename       backup.Filename
	ServerVersion  string
	File           backup.FileDigest
	DigestSettings map[string]string
	LargeObjects   Counted
	SHA256         string // of the manifest's text, in lower-case hex

	tables map[string]Table
	bytes  int // that they take in the document, about
}

// tableBytes is what a table takes in a document, beside its name.
const tableBytes = 120

// errEnough ends the reading of members.
var errEnough = errors.New("the rest is not needed")

// ReadFacts reads a manifest to its end. The contents are the last that a document needs: what follows, which may be a million
// grants, is hashed and not looked at. Whatever of it is wrong shows in the SHA-256. BACKUP_CONFLICT: the database has too many
// tables.
func ReadFacts(r io.Reader) (Facts, error) {
	sum := sha256.New()
	text := io.TeeReader(r, sum)
	f := Facts{tables: map[string]Table{}}
	m := members{json.NewDecoder(text)}
	err := m.each(func(name string) error {
		switch name {
		case "formatVersion":
			return m.Decode(&f.FormatVersion)
		case "databaseId":
			return m.Decode(&f.DatabaseID)
		case "filename":
			return m.Decode(&f.Filename)
		case "serverVersion":
			return m.Decode(&f.ServerVersion)
		case "file":
			return m.Decode(&f.File)
		case "contents":
			return cmp.Or(f.readContents(m), errEnough)
		}
		return m.skip()
	})
	switch {
	case err == nil:
		return Facts{}, errors.New("a backup's manifest has no contents")
	case !errors.Is(err, errEnough):
		return Facts{}, fmt.Errorf("a backup's manifest cannot be read: %w", err)
	}
	if _, err := io.Copy(io.Discard, text); err != nil {
		return Facts{}, err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// digest is what a certificate takes of a backup.TableDigest.
type digest struct {
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"`
}

func (f *Facts) readContents(m members) error {
	return m.each(func(name string) error {
		switch name {
		case "rows":
			return m.each(func(table string) error {
				var rows int64
				err := m.Decode(&rows)
				return errors.Join(err, f.add(table, func(t *Table) { t.Rows = rows }))
			})
		case "digests":
			return m.each(func(table string) error {
				var d digest
				err := m.Decode(&d)
				return errors.Join(err, f.add(table, func(t *Table) { t.Rows, t.Digest = d.Rows, d.Sum }))
			})
		case "digestSettings":
			return m.Decode(&f.DigestSettings)
		case "largeObjects":
			return m.Decode(&f.LargeObjects.Count)
		case "largeObjectDigest":
			var d digest
			err := m.Decode(&d)
			f.LargeObjects.Digest = d.Sum
			return err
		}
		return m.skip()
	})
}

func (f *Facts) add(name string, tell func(*Table)) error {
	t, known := f.tables[name]
	if !known {
		t.Name = name
		if f.bytes += len(name) + tableBytes; f.bytes > MaxDocument {
			return errTooManyTables()
		}
	}
	tell(&t)
	f.tables[name] = t
	return nil
}

// of refuses facts that are not those with which the backup was made: AGENT_ERROR.
func (f Facts) of(b backup.Backup) error {
	var cause error
	switch {
	case f.SHA256 != b.ManifestSHA256:
		cause = fmt.Errorf("its SHA-256 is %s and was %s when the backup was made", f.SHA256, b.ManifestSHA256)
	case f.FormatVersion > backup.FormatVersion:
		cause = fmt.Errorf("its format version %d is unknown", f.FormatVersion)
	case f.DatabaseID != b.DatabaseID || f.Filename != b.Filename || f.File.SHA256 != b.ChecksumSHA256:
		cause = errors.New("it is that of another file")
	default:
		return nil
	}
	return fault.Wrap(cause, fault.AgentError, "the stored manifest of the backup is damaged; another backup can have a certificate")
}

// members reads objects member by member.
type members struct{ *json.Decoder }

var errNoObject = errors.New("an object was expected")

// each has read read the value of each member of the object that comes next.
func (m members) each(read func(name string) error) error {
	switch begin, err := m.Token(); {
	case err != nil:
		return err
	case begin == nil: // null, as an empty map may be written
		return nil
	case begin != json.Delim('{'):
		return errNoObject
	}
	for m.More() {
		name, err := m.Token()
		if err != nil {
			return err
		}
		if err := read(name.(string)); err != nil {
			return err
		}
	}
	_, err := m.Token()
	return err
}

// skip passes over a value.
func (m members) skip() error {
	for depth := 0; ; {
		token, err := m.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
