package upload

import (
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	tar := make([]byte, MostSniffed)
	copy(tar, "toc.dat")
	copy(tar[257:], "ustar\x0000")
	for name, c := range map[string]struct{ begins, packed, plain string }{
		"gzip":            {"\x1f\x8b\x08\x00", "", "compressed by gzip twice: gzip -dc"},
		"text":            {"--\n-- PostgreSQL database dump\n", "not compressed by gzip: gzip FILE", ""},
		"a marked text":   {Mark + "--\n", "not compressed by gzip", ""},
		"nothing":         {"", "", ""},
		"a byte":          {"-", "", ""},
		"custom":          {"PGDMP\x01\x0e\x00", "pg_restore --no-owner", "pg_restore --no-owner"},
		"tar":             {string(tar), "pg_restore --no-owner", "a tar archive"},
		"zip":             {"PK\x03\x04", "unzip -p", "a zip archive"},
		"bzip2":           {"BZh91AY", "bzip2 -dc", "bzip2"},
		"xz":              {"\xfd7zXZ\x00", "xz -dc", "xz"},
		"zstd":            {"\x28\xb5\x2f\xfd", "zstd -dc", "zstd"},
		"lz4":             {"\x04\x22\x4d\x18", "lz4 -dc", "lz4"},
		"PowerShell's":    {"\xff\xfe-\x00-\x00", "pg_dump --file", "UTF-16"},
		"UTF-16":          {"-\x00-\x00", "not compressed", "UTF-16LE"},
		"big-endian":      {"\xfe\xff\x00-", "iconv", "iconv"},
		"a word of these": {"BZ", "not compressed", ""},
	} {
		for what, got := range map[string]struct {
			err  error
			want string
		}{"packed": {Packed([]byte(c.begins)), c.packed}, "plain": {Plain([]byte(c.begins)), c.plain}} {
			if (got.err == nil) != (got.want == "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s, %s: %v, want %q", name, what, got.err, got.want)
			}
		}
	}
}
