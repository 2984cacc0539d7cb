package crash_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
)

// addNetwork adds an entry to the allowlist, and returns its ID.
func (g guest) addNetwork(t *testing.T, w *world, cidr string) string {
	t.Helper()
	a := g.user.do(t, w.api, http.MethodPost, g.path("/network/allowlist"), "", map[string]string{"cidr": cidr})
	return read[struct{ Data struct{ ID string } }](t, a.is(t, http.StatusCreated)).Data.ID
}

func (g guest) removeNetwork(t *testing.T, w *world, entry string) answer {
	t.Helper()
	return g.user.do(t, w.api, http.MethodDelete, g.path("/network/allowlist/"+entry), "", nil)
}

// admits checks that PgBouncer's rules for a database are what its record says.
func (g guest) admits(t *testing.T, w *world, want ...string) {
	t.Helper()
	var recorded, found []string
	list := g.user.do(t, w.api, http.MethodGet, g.path("/network/allowlist"), "", nil).is(t, http.StatusOK)
	for _, e := range read[struct{ Data []struct{ CIDR string } }](t, list).Data {
		recorded = append(recorded, e.CIDR)
	}
	var rules string
	for _, row := range rows(t, w.console, "SHOW CONFIG") {
		if row[0] == "auth_hba_file" {
			rules = row[1]
		}
	}
	text, err := os.ReadFile(rules)
	noError(t, err)
	rule := regexp.MustCompile(`(?m)^hostssl "` + regexp.QuoteMeta(g.db.Name) + `",.* (\S+) scram-sha-256$`)
	for _, m := range rule.FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	slices.Sort(recorded)
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(recorded, want) || !slices.Equal(found, want) {
		t.Errorf("the record has %v and PgBouncer's rules %v, want %v", recorded, found, want)
	}
}

const (
	hereOnly    = "127.0.0.0/8"
	anotherSite = "198.51.100.0/24"
)

// PgBouncer is away while a network is removed, and another added: the agent admits both and applies neither. Both are enforced
// when it is back.
func TestAllowlistWhileThePoolerIsAway(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newGuest(t, w, "hba")
	here := g.addNetwork(t, w, hereOnly)
	g.addNetwork(t, w, elsewhere)
	noError(t, g.comesIn(t, w))

	noError(t, w.Pooler.Kill())
	if a := g.removeNetwork(t, w, here); a.code() != "AGENT_ERROR" {
		t.Errorf("a removal that nobody enforces yet: %d %s", a.status, a.text)
	}
	a := g.user.do(t, w.api, http.MethodPost, g.path("/network/allowlist"), "", map[string]string{"cidr": anotherSite})
	if a.code() != "AGENT_ERROR" {
		t.Errorf("an entry that nobody enforces yet: %d %s", a.status, a.text)
	}
	noError(t, w.Pooler.Start(t.Context()))
	w.settled(t)
	g.admits(t, w, elsewhere, anotherSite)
	if g.comesIn(t, w) == nil {
		t.Error("the removed network still has access")
	}
}

// The metadata are restored from a backup: the server has been told of changes that nobody knows of any more, whose generations
// are higher. What is changed then is enforced; and all that the backup says is, once the operator has had it sent again.
func TestRestoredMetadata(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g, bystander := newGuest(t, w, "back"), newGuest(t, w, "bystander")
	g.addNetwork(t, w, elsewhere)
	here := g.addNetwork(t, w, hereOnly)
	bystander.addNetwork(t, w, hereOnly)
	run := func(statements string) {
		t.Helper()
		_, err := w.meta.ExecContext(soon(t), statements)
		noError(t, err)
	}
	run(`CREATE SCHEMA saved; CREATE TABLE saved.databases AS TABLE databases;
		CREATE TABLE saved.allowlist_entries AS TABLE allowlist_entries`)
	g.removeNetwork(t, w, here).is(t, http.StatusNoContent)
	for range 2 {
		g.removeNetwork(t, w, g.addNetwork(t, w, anotherSite)).is(t, http.StatusNoContent)
		for _, action := range []string{"stop", "start"} {
			g.user.do(t, w.api, http.MethodPost, g.path("/lifecycle"), "", map[string]string{"action": action}).is(t, http.StatusOK)
		}
	}
	if g.comesIn(t, w) == nil {
		t.Error("the removed network still has access")
	}

	run(fmt.Sprintf(`DELETE FROM allowlist_entries WHERE database_id = '%[1]s';
		INSERT INTO allowlist_entries SELECT * FROM saved.allowlist_entries WHERE database_id = '%[1]s';
		UPDATE databases d SET access_generation = s.access_generation, allowlist_generation = s.allowlist_generation,
			allowlist_applied = s.allowlist_applied FROM saved.databases s WHERE s.id = d.id AND d.id = '%[1]s';
		UPDATE databases SET allowlist_generation = allowlist_generation + 1`, g.db.ID)) // the last is what an operator does
	w.quiet(t)
	g.admits(t, w, elsewhere, hereOnly)
	bystander.admits(t, w, hereOnly)
	noError(t, g.comesIn(t, w))

	g.user.do(t, w.api, http.MethodPost, g.path("/lifecycle"), "", map[string]string{"action": "stop"}).is(t, http.StatusOK)
	if g.comesIn(t, w) == nil {
		t.Error("a stopped database lets its customer in")
	}
	g.user.do(t, w.api, http.MethodPost, g.path("/lifecycle"), "", map[string]string{"action": "start"}).is(t, http.StatusOK)
	noError(t, g.comesIn(t, w))
	g.removeNetwork(t, w, here).is(t, http.StatusNoContent)
	g.admits(t, w, elsewhere)
	w.quiet(t)
}
