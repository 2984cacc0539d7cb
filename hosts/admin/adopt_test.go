package admin_test

import (
	"strings"
	"testing"
)

// What has a record is not adopted, what nobody answers for is not touched, and what is deleted is asked about first.
func TestWhatServersHaveAndNobodyKnows(t *testing.T) {
	w := newTown(t)
	w.t.Setenv("PGHERD_KEYRING_FILE", "")
	of := func(verb string, more ...string) []string {
		return append([]string{"database", verb, "--server=" + w.server, "--reason=because"}, more...)
	}
	w.refuses("it has a record: shop is active", of("adopt", "--database="+shop)...)
	w.refuses("it has a record: shop is active", of("adopt", "--database="+shop, "--server-gone")...)
	w.refuses("it has a record: shop is active", of("drop-unknown", "--database="+shop, "--yes")...)
	w.refuses("without a terminal, this needs --yes", of("drop-unknown", "--database=nobody")...)
	w.refuses("server: no server is called", "database", "adopt", "--server=none", "--database=x", "--reason=because")
	w.refuses("account: no account is called", of("adopt", "--database=x", "--account=nobody")...)
	w.refuses("reason: must have 1-300 characters", "database", "adopt", "--server="+w.server, "--database="+shop, "--reason= ")
	w.refuses("reason: must have 1-300 characters", "database", "finish-deletion", "--database="+shop, "--yes", "--reason= ")
	w.refuses("without a terminal, this needs --yes", "database", "finish-deletion", "--database="+shop, "--reason=because")
	w.refuses("INVALID_BACKUP_FILENAME", "backup", "adopt", "--database="+shop, "--reason=because", "--file=x")

	known := text(t, w.lists("backup", "list", "--database="+blog)[0], "fileName")
	got := w.lists("backup", "adopt", "--database="+blog, "--reason=because", "--file="+known)
	if len(got) != 1 || got[0]["fileName"] != known || got[0]["why"] != nil {
		t.Errorf("of one that is known: %v", got)
	}
	out, err := w.run("database", "drop-unknown", "--help")
	if err != nil || !strings.Contains(out, "--without-backup") {
		t.Errorf("%v, %s", err, out)
	}
}
