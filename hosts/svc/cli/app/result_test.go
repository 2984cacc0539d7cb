package app

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestAResultIsShownInLines(t *testing.T) {
	for _, c := range []struct{ result, want string }{
		{`{}`, ""},
		{`null`, ""},
		{
			`{"purgeAfter":"2026-11-30T22:33:38.131047Z","deletionBackup":{"fileName":"a.sql.gz","sizeBytes":2048,"checksumSha256":"ab"}}`,
			"Purge after:                       2026-11-30T22:33:38Z\nDeletion backup file name:         a.sql.gz\n" +
				"Deletion backup size:              2 KiB\nDeletion backup checksum SHA-256:  ab\n",
		},
		{
			`{"databaseId":"x","restored":{"members":0},"skipped":{"keys":[]},"notes":["a","b"],"list":[{"n":1}],"done":true,"none":null}`,
			"Database ID:       x\nRestored members:  0\nNotes:             a, b\nList:              {\"n\":1}\nDone:              yes\n",
		},
		{`{"name":"\u001b[2J"}`, "Name:  \\x1b[2J\n"},
		{`{"n\u001bm":1}`, "N\\x1bm:  1\n"},
	} {
		var text strings.Builder
		a := &App{Out: ScreenOf(&text), Err: ScreenOf(io.Discard)}
		if err := a.ShowRecord(nil, resultFields(json.RawMessage(c.result))...); err != nil {
			t.Fatal(err)
		}
		if text.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.result, text.String(), c.want)
		}
	}
}
