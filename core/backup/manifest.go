package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// FormatVersion is the manifest format that this program writes. Version 3 is the first with logins and their grants, version 4
// with digests of contents, the access to large objects, and a checksum of the manifest's own text.
const FormatVersion = 4

// MaxManifestBytes bounds a manifest; ParseManifest refuses a longer one.
const MaxManifestBytes = 256 << 20

// Manifest describes a backup. It is stored as JSON beside the backup file, and verification compares a restored copy with its
// Contents.
type Manifest struct {
	FormatVersion int            `json:"formatVersion"`
	DatabaseID    id.DatabaseID  `json:"databaseId"`
	OperationID   id.OperationID `json:"operationId"`
	Filename      Filename       `json:"filename"`
	CreatedAt     time.Time      `json:"createdAt"`
	WrittenAt     time.Time      `json:"writtenAt"` // when the two files were complete
	ServerVersion string         `json:"serverVersion"`
	DatabaseBytes int64          `json:"databaseBytes"` // how large the database was in PostgreSQL
	File          FileDigest     `json:"file"`          // the backup file
	Sidecar       FileDigest     `json:"sidecar"`       // the schema with owners and privileges
	Snapshot      *Snapshot      `json:"snapshot,omitempty"`
	Contents      Contents       `json:"contents"`
	Settings      []Setting      `json:"settings"`
	Logins        []Login        `json:"logins"`
	Grants        []Grant        `json:"grants"`
	LargeObjects  []LargeObjects `json:"largeObjects,omitempty"` // who may use them, which the sidecar leaves out
}

// Snapshot says how it was made sure that all of a set is of one moment: every table was locked, against what empties it or
// writes it anew, before the snapshot was taken, and until all was written.
type Snapshot struct {
	LockedTables int `json:"lockedTables"`
	Tries        int `json:"tries"` // the last of which nothing has disturbed
}

// StoredManifest is a manifest as it is in a file.
type StoredManifest struct {
	Manifest
	SHA256 string // of its text, in lower-case hex
}

// FileDigest identifies a file by its content.
type FileDigest struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	SHA256    string `json:"sha256"` // lower-case hex
}

// Contents is everything that a restore must reproduce.
type Contents struct {
	Locale       Locale           `json:"locale"`
	Extensions   []Extension      `json:"extensions"`
	Rows         map[string]int64 `json:"rows"` // by quoted table name, without the rows of child tables
	Objects      Objects          `json:"objects"`
	Sequences    map[string]Value `json:"sequences"` // by quoted name
	LargeObjects int64            `json:"largeObjects"`

	// Digests are by quoted table name, like Rows. A manifest without DigestSettings has none, nor one of large objects.
	Digests           map[string]TableDigest `json:"digests,omitempty"`
	LargeObjectDigest *TableDigest           `json:"largeObjectDigest,omitempty"`
	DigestSettings    map[string]string      `json:"digestSettings,omitempty"` // under which the lines were written
}

// Locale is a database's encoding and collation. Empty fields do not apply to the provider.
type Locale struct {
	Encoding  string `json:"encoding"`
	Provider  string `json:"provider"` // libc, icu or builtin
	Collate   string `json:"collate"`
	Ctype     string `json:"ctype"`
	ICULocale string `json:"icuLocale,omitempty"`
	ICURules  string `json:"icuRules,omitempty"`
}

// Extension is an installed extension.
type Extension struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Schema  string `json:"schema"`
}

// Value is the position of a sequence.
type Value struct {
	Last   int64 `json:"last"`
	Called bool  `json:"called"` // false: Last itself is the next value
}

// Setting is a default of the database or, with a Login, of that login in it; one without a Name is in place of too many.
type Setting struct {
	Login string `json:"login,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Login is a role of the database as the dump's snapshot saw it. Passwords are never part of a manifest.
type Login struct {
	Name            string     `json:"name"`
	CanLogin        bool       `json:"canLogin"`
	ConnectionLimit int        `json:"connectionLimit"` // -1: none
	ValidUntil      *time.Time `json:"validUntil,omitempty"`
	MemberOf        []string   `json:"memberOf,omitempty"`
}

// Grant is the set of privileges of one role on one object.
type Grant struct {
	Kind       string   `json:"kind"`             // database, schema, table, column, sequence, function, type, default
	Object     string   `json:"object"`           // its quoted identity
	Grantor    string   `json:"grantor"`          // empty if PostgreSQL records none
	Grantee    string   `json:"grantee"`          // PUBLIC for everyone
	Privileges []string `json:"privileges"`       // sorted
	WithOption []string `json:"option,omitempty"` // those granted WITH GRANT OPTION
}

// HasRoles reports whether a managed restore can take logins and grants from the manifest.
func (m Manifest) HasRoles() bool { return m.FormatVersion >= 3 && len(m.Logins) > 0 }

// Whole is what belongs to a database as a whole, and is in no dump: what its roles may do with it, and what they have stored for
// themselves in it.
type Whole struct {
	Grants   []Grant   `json:"grants,omitempty"`
	Settings []Setting `json:"settings,omitempty"`
}

// Whole is that of the database, without what is the service's.
func (m Manifest) Whole() (w Whole) {
	for _, g := range m.Grants {
		if g.Kind == "database" {
			w.Grants = append(w.Grants, g)
		}
	}
	for _, s := range m.Settings {
		if s.Login != "" {
			w.Settings = append(w.Settings, s)
		}
	}
	return w
}

// Encode writes the manifest as indented JSON, from format 4 on with its checksum.
func (m Manifest) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if m.FormatVersion >= sealedSince {
		text = seal(text)
	} else {
		text = append(text, '\n')
	}
	if len(text) > MaxManifestBytes { // which nobody could read again
		return nil, fmt.Errorf("the manifest is longer than %d bytes", MaxManifestBytes)
	}
	return text, nil
}

// ErrManifest is what a text is that is no manifest, or a damaged one.
var ErrManifest = errors.New("not a backup manifest")

// ParseManifest reads and checks a manifest. Unknown fields are refused: this version must not accept a manifest that it only
// partly understands.
func ParseManifest(text []byte) (StoredManifest, error) {
	if len(text) > MaxManifestBytes {
		return StoredManifest{}, fmt.Errorf("%w: longer than %d bytes", ErrManifest, MaxManifestBytes)
	}
	stored := StoredManifest{SHA256: sumOf(text)}
	body, sealed, err := unseal(text)
	if err != nil {
		return StoredManifest{}, err
	}
	m := &stored.Manifest
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return StoredManifest{}, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return StoredManifest{}, fmt.Errorf("%w: text after its end", ErrManifest)
	}
	if sealed != (m.FormatVersion >= sealedSince) {
		return StoredManifest{}, fmt.Errorf("%w: format version %d with checksum: %t", ErrManifest, m.FormatVersion, sealed)
	}
	return stored, m.check()
}

func (m Manifest) check() error {
	if m.FormatVersion < 1 || m.FormatVersion > FormatVersion {
		return fmt.Errorf("%w: format version %d is unknown", ErrManifest, m.FormatVersion)
	}
	if _, err := ParseFilename(string(m.Filename)); err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if m.File.Name != string(m.Filename) {
		return fmt.Errorf("%w: it names two files", ErrManifest)
	}
	if m.DatabaseBytes < 0 {
		return fmt.Errorf("%w: the database has %d bytes", ErrManifest, m.DatabaseBytes)
	}
	for _, f := range []FileDigest{m.File, m.Sidecar} {
		if !isSum(f.SHA256) || f.SizeBytes < 0 {
			return fmt.Errorf("%w: bad digest of %q", ErrManifest, f.Name)
		}
	}
	return m.Contents.checkDigests()
}
