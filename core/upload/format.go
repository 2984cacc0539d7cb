package upload

import (
	"bytes"
	"errors"
	"fmt"
)

// MostSniffed is how many bytes of the beginning of a file Packed and Plain look at.
const MostSniffed = 512

const plainDump = "pg_dump --format=plain --no-owner --no-privileges DATABASE | gzip > dump.sql.gz"

// formats are what people send instead, by what the file has at a place, with the command that makes the right file of it.
var formats = []struct {
	at          int
	magic, what string
	way         string
}{
	{0, "PGDMP", "an archive of pg_dump", "pg_restore --no-owner --no-privileges --file=- FILE | gzip > dump.sql.gz"},
	{257, "ustar", "a tar archive", "pg_restore --no-owner --no-privileges --file=- FILE | gzip > dump.sql.gz"},
	{0, "\xff\xfe", "text in UTF-16, as PowerShell's > writes it", "pg_dump --file=dump.sql ...; gzip dump.sql"},
	{0, "\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE | gzip > dump.sql.gz"},
	{0, "PK\x03\x04", "a zip archive", "unzip -p FILE | gzip > dump.sql.gz"},
	{0, "BZh", "compressed by bzip2", "bzip2 -dc FILE | gzip > dump.sql.gz"},
	{0, "\xfd7zXZ\x00", "compressed by xz", "xz -dc FILE | gzip > dump.sql.gz"},
	{0, "\x28\xb5\x2f\xfd", "compressed by zstd", "zstd -dc FILE | gzip > dump.sql.gz"},
	{0, "\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc FILE | gzip > dump.sql.gz"},
}

// gzipMagic begins each member of a gzip file.
const gzipMagic = "\x1f\x8b"

// Packed says what the beginning of a file is, where that is not gzip.
func Packed(begins []byte) error {
	if bytes.HasPrefix(begins, []byte(gzipMagic)) || len(begins) < len(gzipMagic) {
		return nil
	}
	if err := other(begins); err != nil {
		return err
	}
	return errors.New("it is not compressed by gzip: gzip FILE")
}

// Plain says what the beginning of a gzip file's content is, where that is not plain text.
func Plain(begins []byte) error {
	switch {
	case bytes.HasPrefix(begins, []byte(gzipMagic)):
		return errors.New("it is compressed by gzip twice: gzip -dc FILE > dump.sql.gz")
	case len(begins) > 1 && begins[0] != 0 && begins[1] == 0:
		return errors.New("it is text in UTF-16: iconv -f UTF-16LE -t UTF-8 FILE | gzip > dump.sql.gz")
	}
	return other(begins)
}

func other(begins []byte) error {
	for _, f := range formats {
		if len(begins) > f.at && bytes.HasPrefix(begins[f.at:], []byte(f.magic)) {
			return fmt.Errorf("it is %s, and not SQL text in gzip's format: %s, or %s", f.what, f.way, plainDump)
		}
	}
	return nil
}

// Mark is the byte order mark that some programs write before a text in UTF-8.
const Mark = "\xef\xbb\xbf"
