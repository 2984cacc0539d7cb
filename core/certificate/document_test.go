package certificate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

const (
	keyID = "10000000-0000-4000-8000-000000000001"
	ones  = "1111111111111111111111111111111111111111111111111111111111111111"
)

// manifest is one of a version that writes members which this one does not know.
const manifest = `{
  "formatVersion": 4,
  "databaseId": "20000000-0000-4000-8000-000000000002",
  "filename": "20260301_120000.sql.gz",
  "serverVersion": "16.14",
  "file": {"name": "20260301_120000.sql.gz", "sizeBytes": 77, "sha256": "` + ones + `"},
  "later": [{"tables": [1, null, {"x": "}"}]}],
  "contents": {
    "locale": {"encoding": "UTF8"},
    "rows": {"public.\"<b>\"": 2, "public.a": 1, "public.foreign": 0},
    "objects": {"view": 7},
    "sequences": null,
    "largeObjects": 5,
    "digests": {
      "public.a": {"columns": ["id", "\"x y\""], "rows": 1, "sum": "aa"},
      "public.\"<b>\"": {"rows": 2, "sum": "bb"}
    },
    "largeObjectDigest": {"rows": 5, "sum": "cc"},
    "digestSettings": {"TimeZone": "UTC", "DateStyle": "ISO, MDY"}
  },
  "grants": [{"kind": "table"}]
}
`

const document = `{"format":"pgherd-restore-certificate/1","keyId":"` + keyID + `",` +
	`"databaseId":"20000000-0000-4000-8000-000000000002","database":"orders",` +
	`"backup":{"filename":"20260301_120000.sql.gz","operationId":"30000000-0000-4000-8000-000000000003",` +
	`"createdAt":"2026-03-01T12:00:00Z","sizeBytes":77,"sha256":"` + ones + `"},"manifestSha256":"%s","serverVersion":"16.14",` +
	`"verifiedAt":"2026-03-01T11:05:00.000007Z","comparison":"contents",` +
	`"digestSettings":{"DateStyle":"ISO, MDY","TimeZone":"UTC"},"largeObjects":{"count":5,"digest":"cc"},` +
	`"tables":[{"name":"public.\"<b>\"","rows":2,"digest":"bb"},{"name":"public.a","rows":1,"digest":"aa"},` +
	`{"name":"public.foreign","rows":0}]}` + "\n"

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// stored is the record of a backup with that manifest.
func stored(manifest string) backup.Backup {
	verified := time.Date(2026, 3, 1, 12, 5, 0, 7000, time.FixedZone("CET", 3600))
	return backup.Backup{
		DatabaseID: "20000000-0000-4000-8000-000000000002", Filename: "20260301_120000.sql.gz",
		OperationID: "30000000-0000-4000-8000-000000000003", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), SizeBytes: 77,
		ChecksumSHA256: ones, VerifiedAt: &verified, ManifestSHA256: sumOf(manifest),
	}
}

func written(manifest string, b backup.Backup) ([]byte, error) {
	f, err := ReadFacts(strings.NewReader(manifest))
	if err != nil {
		return nil, err
	}
	return Write(keyID, "orders", b, f)
}

func TestTheDocumentOfABackup(t *testing.T) {
	for range 10 { // the order of a map is another each time
		text, err := written(manifest, stored(manifest))
		if want := fmt.Sprintf(document, sumOf(manifest)); err != nil || string(text) != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, text, want)
		}
	}
}

func TestWithoutDigestsNumbersWereCompared(t *testing.T) {
	const manifest = `{"formatVersion":4,"databaseId":"20000000-0000-4000-8000-000000000002","filename":"20260301_120000.sql.gz",
		"file":{"sha256":"` + ones + `"},"contents":{"rows":{"public.a":3}}}`
	text, err := written(manifest, stored(manifest))
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Comparison != ByNumbers || len(d.Tables) != 1 || d.Tables[0] != (Table{Name: "public.a", Rows: 3}) ||
		bytes.Contains(text, []byte("digest")) {
		t.Errorf("%s", text)
	}
}

// Not a bit of the manifest may be another one, and its text is that of the backup.
func TestAnotherManifestHasNoDocument(t *testing.T) {
	for i := range manifest {
		changed := []byte(manifest)
		changed[i] ^= 1
		if text, err := written(string(changed), stored(manifest)); err == nil {
			t.Fatalf("with another byte at %d: %s", i, text)
		}
	}
	for _, other := range []string{manifest + "x", manifest[:len(manifest)-3]} {
		if _, err := written(other, stored(manifest)); !fault.Has(err, fault.AgentError) {
			t.Errorf("of %d bytes: %v", len(other), err)
		}
	}
	for name, other := range map[string]string{
		"another database": strings.Replace(manifest, `"20000000`, `"20000001`, 1),
		"another name":     strings.Replace(manifest, `"filename": "20260301_120000`, `"filename": "20260301_120001`, 1),
		"another file":     strings.Replace(manifest, ones, strings.Repeat("2", 64), 1),
		"a later format":   strings.Replace(manifest, `"formatVersion": 4`, `"formatVersion": 1000`, 1),
	} {
		if _, err := written(other, stored(other)); !fault.Has(err, fault.AgentError) || other == manifest {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"no object": `[1]`, "nothing": "", "no contents": `{"formatVersion":4}`, "contents that are none": `{"contents":[]}`,
		"cut short": manifest[:strings.Index(manifest, "bb")],
	} {
		if _, err := ReadFacts(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestOnlyAVerifiedBackupHasACertificate(t *testing.T) {
	if err := Decide(stored(manifest)); err != nil {
		t.Error(err)
	}
	b := stored(manifest)
	b.VerifiedAt = nil
	if err := Decide(b); !fault.Has(err, fault.BackupNotVerified) {
		t.Error(err)
	}
}

func TestADocumentIsBounded(t *testing.T) {
	manifest := func(tables int, name string) string {
		var m strings.Builder
		m.WriteString(`{"formatVersion":4,"contents":{"rows":{"x":0`)
		for i := range tables {
			fmt.Fprintf(&m, `,"%s%d":1`, name, i)
		}
		m.WriteString(`}}}`)
		return m.String()
	}
	if _, err := ReadFacts(strings.NewReader(manifest(50_000, "public.t"))); err != nil {
		t.Error(err)
	}
	if _, err := ReadFacts(strings.NewReader(manifest(70_000, "public.t"))); !fault.Has(err, fault.BackupConflict) {
		t.Errorf("too many tables: %v", err)
	}
}

// The facts of a certificate are those of a manifest that was read to its end.
func FuzzReadFacts(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(`{"contents":{"digests":{"a":null}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		facts, err := ReadFacts(bytes.NewReader(text))
		if err == nil && facts.SHA256 != sumOf(string(text)) {
			t.Error("it has not read all")
		}
	})
}
