package copies

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
)

// packed is a gzip member.
func packed(text string) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // which is a level
	_, _ = io.WriteString(z, text)                        // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// restoredWithout is what comes of an upload that is refused before the server has its first statement.
func restoredWithout(file []byte) error {
	judge := dumpsql.Foreign{Owner: "shop", Extension: func(string) bool { return false }}
	r := load.Restorer{Refuse: judge.Refuse}
	err := readUpload(iotest.HalfReader(bytes.NewReader(file)), int64(len(file)), func(dump io.Reader) error {
		return r.Run(context.Background(), dumpsql.NewReader(dump, dumpsql.Limits{Statement: 1 << 20}))
	})
	return ofUpload(advised(err, r.Dumped, "16.14"))
}

const blanks = "-- a comment\n\n"

// Files that are refused before anything of them is executed, with what is said of each.
func TestUploadsThatAreNoDump(t *testing.T) {
	good := packed(blanks)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1 // of its CRC
	for what, attack := range map[string]struct {
		file []byte
		said string
	}{
		"bytes after the last member": {append(bytes.Clone(good), "more, and more"...), "the file is damaged: gzip: invalid header"},
		"zeros after the last member": {append(bytes.Clone(good), make([]byte, 512)...), "the file is damaged: gzip: invalid header"},
		"half a member":               {append(bytes.Clone(good), good[:12]...), "the file is damaged: unexpected EOF"},
		"one of many members": {
			slices.Concat(bytes.Repeat(good, 100), packed("\\! id\n"), good), "statement 1, line 201: backslash",
		},
		"a statement over members": {slices.Concat(good, packed("\\"), packed("! id\n")), "statement 1, line 3: backslash"},
		"cut off":                  {good[:len(good)-3], "the file is damaged: unexpected EOF"},
		"cut off in the header":    {good[:5], "the file is damaged: unexpected EOF"},
		"bit flip":                 {flipped, "the file is damaged: gzip: invalid checksum"},
		"no gzip":                  {[]byte(blanks), "it is not compressed by gzip: gzip FILE"},
		"an archive":               {packed("PGDMP\x01\x0e\x00"), "pg_restore --no-owner --no-privileges --file=-"},
		"gzip in gzip":             {packed(string(good)), "it is compressed by gzip twice"},
		"UTF-16":                   {packed("\xff\xfeS\x00E\x00"), "text in UTF-16"},
		"another compression":      {[]byte("BZh91AY&SY"), "it is compressed by bzip2"},
		"a bomb":                   {packed(strings.Repeat("-", 4<<20)), "it unpacks to more than 200 times its size"},
		"a bomb of members": {
			bytes.Repeat(packed(strings.Repeat("-\n", 50_000)), 20), "it unpacks to more than 200 times its size",
		},
		`\!`: {packed("\n\n\\! touch /tmp/x\n"), "statement 1, line 3: backslash command"},
		`\! in a comment (CVE-2025-8715)`: {
			packed("--\n-- Name: a\n\\! id\n; Type: TABLE\n"), "statement 1, line 3: backslash command",
		},
		`\copy`:                                  {packed("\\copy a from program 'id'\n"), "statement 1, line 1: backslash command"},
		`\unrestrict that runs (CVE-2026-18408)`: {packed("\\restrict a\n\\unrestrict :`id`\n"), "statement 1, line 2: backslash"},
		`\restrict that runs`:                    {packed("\\restrict `id`\n"), "statement 1, line 1: backslash command"},
		`\connect`:                               {packed("\\connect postgres\n"), "statement 1, line 1: backslash command"},
		"ALTER ROLE":                             {packed("\nALTER ROLE postgres PASSWORD 'x';"), `statement 1 on line 2: "ALTER ROLE`},
		"SET SESSION AUTHORIZATION":              {packed("SET SESSION AUTHORIZATION postgres;"), "statement 1 on line 1"},
		"an untrusted extension":                 {packed("CREATE EXTENSION dblink;"), "no trusted extension dblink"},
		"COPY ... PROGRAM":                       {packed("COPY a FROM PROGRAM 'id';"), "statement 1 on line 1"},
		"COPY ... PROGRAM in disguise": {
			packed("COPY a FROM PROGRAM 'id' WHERE b IS DISTINCT FROM stdin;\n\\.\n"), "statement 1 on line 1",
		},
		"statistics (CVE-2026-16238)": {
			packed("SELECT * FROM pg_catalog.pg_restore_attribute_stats('x', 1);"), "--no-statistics",
		},
		"an owner": {packed("ALTER TABLE a OWNER TO postgres;"), "--no-owner"},
		"a statement without end": {
			packed("CREATE TABLE a (b text DEFAULT '" + noise(2<<20)),
			"statement 1, line 1: statement is too long: a statement may have 32 MiB",
		},
		"a comment without end": {packed("/*" + noise(2<<20)), "statement 1, line 1: statement is too long"},
		"an unclosed string":    {packed("\nCREATE TABLE a (b text DEFAULT 'x);"), "statement 1, line 2: the dump ends in the middle"},
		"a zero byte":           {packed("CREATE TABLE a\x00 (b int);"), "statement 1, line 1: zero byte"},
	} {
		err := restoredWithout(attack.file)
		if err == nil || !strings.HasPrefix(err.Error(), "BACKUP_NOT_VERIFIED: the upload cannot be restored: ") ||
			!strings.Contains(err.Error(), attack.said) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := restoredWithout(slices.Concat(good, packed(""), good)); err != nil {
		t.Error("several members: ", err)
	}
}

// noise is text that hardly becomes smaller when it is packed.
func noise(n int) string {
	text := make([]byte, n)
	x := uint64(1)
	for i := range text {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		text[i] = 'a' + byte(x%26)
	}
	return string(text)
}
