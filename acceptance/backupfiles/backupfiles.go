// Package backupfiles reads and changes the blobs of a backup in an agent's folder, for tests.
package backupfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// The parts of a backup.
const (
	Record   = ".set"
	Data     = ".data"
	Schema   = ".schema"
	Manifest = ".manifest"
	Verified = ".verified"
)

// Set is a backup in a folder, with the key of its database.
type Set struct {
	Folder   string
	Database id.DatabaseID
	Filename backup.Filename
	Key      []byte
}

// Path is where a part is that the record names. It must be there.
func (s Set) Path(part string) (string, error) {
	path := filepath.Join(s.Folder, string(s.Database), s.Filename.Stem())
	if part != Record {
		var record struct {
			Attempt string `json:"attempt"`
		}
		text, err := s.read(path + Record)
		if err == nil {
			err = json.Unmarshal(text, &record)
		}
		if err != nil {
			return "", err
		}
		path += "." + record.Attempt
	}
	_, err := os.Stat(path + part)
	return path + part, err
}

func (s Set) name(path string) string { return string(s.Database) + "/" + filepath.Base(path) }

// Read opens a part.
func (s Set) Read(part string) ([]byte, error) {
	path, err := s.Path(part)
	if err != nil {
		return nil, err
	}
	return s.read(path)
}

func (s Set) read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	opened, err := sealed.NewReader(bytes.NewReader(text), s.Key, s.name(path))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(opened)
}

// Write puts another text in the place of a part. The file stays its owner's.
func (s Set) Write(part string, text []byte) error {
	path, err := s.Path(part)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := sealed.NewWriter(&out, s.Key, s.name(path))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close(), os.WriteFile(path, out.Bytes(), 0o600))
}
