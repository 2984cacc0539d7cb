package certificate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Format says what a document is and which fields it has. It stands first, so that nothing else that an installation may ever
// sign passes for a certificate.
const Format = "pgherd-restore-certificate/1"

// MaxDocument bounds a document, in bytes: some 50,000 tables. All of it has to be in memory to be signed.
const MaxDocument = 8 << 20

// Comparison says how a restored copy was compared.
type Comparison string

// The comparisons. Both compare the number of rows of each table, and of objects of each kind.
const (
	ByContents Comparison = "contents" // every row of every table
	ByNumbers  Comparison = "numbers"  // numbers only
)

// Document is what is signed, as JSON.
type Document struct {
	Format         string              `json:"format"`
	KeyID          id.CertificateKeyID `json:"keyId"`
	DatabaseID     id.DatabaseID       `json:"databaseId"`
	Database       string              `json:"database"`
	Backup         File                `json:"backup"`
	ManifestSHA256 string              `json:"manifestSha256"`
	ServerVersion  string              `json:"serverVersion"`
	VerifiedAt     time.Time           `json:"verifiedAt"` // when the file as stored was restored in isolation and found equal
	Comparison     Comparison          `json:"comparison"`
	// DigestSettings are those of PostgreSQL under which the lines of a digest are written.
	DigestSettings map[string]string `json:"digestSettings,omitempty"`
	LargeObjects   Counted           `json:"largeObjects"`
	Tables         []Table           `json:"tables"` // by name
}

// File is the backup file that was restored.
type File struct {
	Filename    backup.Filename `json:"filename"`
	OperationID id.OperationID  `json:"operationId"`
	CreatedAt   time.Time       `json:"createdAt"`
	SizeBytes   int64           `json:"sizeBytes"`
	SHA256      string          `json:"sha256"`
}

// Table is one table of the database, with its quoted name.
type Table struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest,omitempty"` // see backup.TableDigest
}

// Counted are the large objects.
type Counted struct {
	Count  int64  `json:"count"`
	Digest string `json:"digest,omitempty"`
}

// Decide says whether a backup has a certificate. BACKUP_NOT_VERIFIED says why not, and what to do.
func Decide(b backup.Backup) error {
	if b.VerifiedAt != nil {
		return nil
	}
	return fault.New(fault.BackupNotVerified, "the file was not restored and found equal, so it has no certificate: its operation "+
		"says what differs, or the plan's backups are not verified")
}

// Write makes the document of a backup: always the same bytes of the same facts and key.
func Write(k id.CertificateKeyID, database string, b backup.Backup, f Facts) ([]byte, error) {
	if err := f.of(b); err != nil {
		return nil, err
	}
	d := Document{
		Format: Format, KeyID: k, DatabaseID: b.DatabaseID, Database: database,
		Backup: File{
			Filename: b.Filename, OperationID: b.OperationID, CreatedAt: b.CreatedAt.UTC(), SizeBytes: b.SizeBytes,
			SHA256: b.ChecksumSHA256,
		},
		ManifestSHA256: b.ManifestSHA256, ServerVersion: f.ServerVersion, VerifiedAt: b.VerifiedAt.UTC(),
		Comparison: ByNumbers, DigestSettings: f.DigestSettings, LargeObjects: f.LargeObjects, Tables: []Table{},
	}
	if len(f.DigestSettings) > 0 {
		d.Comparison = ByContents
	}
	for _, name := range slices.Sorted(maps.Keys(f.tables)) {
		d.Tables = append(d.Tables, f.tables[name])
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	if text.Len() > MaxDocument {
		return nil, errTooManyTables()
	}
	return text.Bytes(), nil
}

func errTooManyTables() error {
	return fault.New(fault.BackupConflict, "the database has too many tables for a certificate of at most %d bytes", MaxDocument)
}
