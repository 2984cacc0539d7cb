package crash_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// admits checks that PgBouncer's rules for a database are what its record says.
func (g guest) admits(t *testing.T, w *world, want ...string) {
	t.Helper()
	var recorded, found []string
	for _, e := range g.networks(t, w.api) {
		recorded = append(recorded, e.CIDR)
	}
	var rules string
	for _, row := range rows(t, w.console, "SHOW CONFIG") {
		if row[0] == "auth_hba_file" {
			rules = row[1]
		}
	}
	text := must(os.ReadFile(rules))(t)
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
	here := must(g.addNetwork(t, w.api, hereOnly))(t)
	must(g.addNetwork(t, w.api, elsewhere))(t)
	noError(t, g.comesIn(t, w))

	noError(t, w.Pooler.Kill())
	refused(t, "a removal that nobody enforces yet", g.removeNetwork(t, w.api, here), fault.AgentError)
	_, err := g.addNetwork(t, w.api, anotherSite)
	refused(t, "an entry that nobody enforces yet", err, fault.AgentError)
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
	must(g.addNetwork(t, w.api, elsewhere))(t)
	here := must(g.addNetwork(t, w.api, hereOnly))(t)
	must(bystander.addNetwork(t, w.api, hereOnly))(t)
	run := func(statements string) {
		t.Helper()
		must(w.meta.ExecContext(soon(t), statements))(t)
	}
	run(`CREATE SCHEMA saved; CREATE TABLE saved.databases AS TABLE databases;
		CREATE TABLE saved.allowlist_entries AS TABLE allowlist_entries`)
	noError(t, g.removeNetwork(t, w.api, here))
	for range 2 {
		noError(t, g.removeNetwork(t, w.api, must(g.addNetwork(t, w.api, anotherSite))(t)))
		g.set(t, w.api, "stop")
		g.set(t, w.api, "start")
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

	g.set(t, w.api, "stop")
	if g.comesIn(t, w) == nil {
		t.Error("a stopped database lets its customer in")
	}
	g.set(t, w.api, "start")
	noError(t, g.comesIn(t, w))
	noError(t, g.removeNetwork(t, w.api, here))
	g.admits(t, w, elsewhere)
	w.quiet(t)
}
