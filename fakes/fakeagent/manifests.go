package fakeagent

import (
	"bytes"
	"strings"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// manifestOf describes a backup.
func manifestOf(op id.OperationID, spec command.Backup, snapshot string, content []byte) []byte {
	m := backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: spec.DatabaseID, OperationID: op, Filename: spec.Filename,
		ServerVersion: serverVersion,
		File:          backup.FileDigest{Name: string(spec.Filename), SizeBytes: int64(len(content)), SHA256: sum(content)},
		Sidecar:       backup.FileDigest{SHA256: sum(nil)},
		Contents:      contentsOf(snapshot),
	}
	text, err := m.Encode()
	if err != nil {
		panic("fakeagent: " + err.Error()) // only a manifest that is too long
	}
	return text
}

// contentsOf describes what an SQL text makes. The lines of its INSERTs, into tables of public, stand for those that COPY writes.
func contentsOf(text string) backup.Contents {
	sums := map[string]*backup.LineSum{}
	for line := range strings.Lines(text) {
		if rest, inserts := strings.CutPrefix(line, "INSERT INTO "); inserts {
			table, _, _ := strings.Cut(rest, " ")
			if sums["public."+table] == nil {
				sums["public."+table] = &backup.LineSum{}
			}
			_, _ = sums["public."+table].Write([]byte(line)) // it never fails
		}
	}
	none := new(backup.Sum).Digest(nil)
	c := backup.Contents{
		Rows: map[string]int64{}, Digests: map[string]backup.TableDigest{}, LargeObjectDigest: &none,
		DigestSettings: backup.DigestSettings(),
	}
	for table, lines := range sums {
		d := lines.Digest(nil)
		c.Rows[table], c.Digests[table] = d.Rows, d
	}
	return c
}

// Tamper changes the manifest of a backup as it is stored.
func (s *Server) Tamper(db id.DatabaseID, filename backup.Filename, change func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[fileKey{database: db, filename: filename}]
	f.manifest = change(bytes.Clone(f.manifest))
}
