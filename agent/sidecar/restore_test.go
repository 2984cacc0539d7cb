package sidecar_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func (w *world) standing() sidecar.Roles {
	w.t.Helper()
	return check.Must(sidecar.Standing(w.t.Context(), w.Open(w.t), "shop"))(w.t)
}

// equal demands that a copy says what the sidecar says, and has the owners and privileges of another database.
func (w *world) equal(from whole, r sidecar.Roles, access string) {
	w.t.Helper()
	w.same(from.text, r)
	if diff := cmp.Diff(strings.Split(access, "\n"), strings.Split(w.access(), "\n")); diff != "" {
		w.t.Error(diff)
	}
	for _, d := range r.CompareLargeObjects(from.large, w.largeObjects()) {
		w.t.Error(d)
	}
	const query = `SELECT count(*) FROM pg_shdepend WHERE refobjid = $1::regrole
		AND dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND objid NOT IN (SELECT oid FROM pg_database WHERE datname <> current_database())`
	var left int
	check.NoError(w.t, w.Open(w.t).QueryRow(query, login).Scan(&left))
	if left > 0 {
		w.t.Errorf("%d things refer to the copy's login", left)
	}
}

// Where all roles stand, everything comes back as it was: by what pg_dump says, and by the catalogs.
func TestEverythingComesBack(t *testing.T) {
	from := everything(t)
	w, c := like(t, from.source), like(t, from.copied)
	result, err := c.made(from.text, w.standing(), from.large)
	if err != nil || len(result.DroppedPolicies) > 0 {
		t.Fatal(result, err)
	}
	c.equal(from, w.standing(), w.access())
}

// What roles that are gone had comes to what PostgreSQL's own way to remove them leaves. That forgets what somebody else than
// the object's owner has granted to the role, and what was granted on a column by one who had got it on the table.
func TestRolesThatAreGone(t *testing.T) {
	const (
		toSecond = `SET ROLE shop_rt; REVOKE SELECT ON sales.customer FROM shop_c2 CASCADE;
			REVOKE USAGE ON TYPE types.mood FROM shop_c2;
			REVOKE SELECT ON LARGE OBJECT 900002 FROM shop_c2; RESET ROLE`
		toCustom  = `SET ROLE shop_c2; REVOKE SELECT ON sales.customer FROM "shop ""TO"" $$ Ü;"; RESET ROLE`
		byRuntime = `SET ROLE shop_rt; REVOKE INSERT (email) ON sales.customer FROM shop_ro; RESET ROLE`
	)
	for name, c := range map[string]struct {
		gone     []string
		forgets  []string
		policies []string
	}{
		"one": {[]string{"shop_c2"}, []string{toSecond}, []string{`mine ON sales.of_second`, `only_second ON sales.customer`}},
		"two": {[]string{custom, "shop_rt"}, []string{toCustom, byRuntime}, []string{`words ON sales.words`}},
		"all but the owner": {customers[1:], []string{byRuntime}, []string{
			`"both" ON sales.of_second`, `groups ON sales.event`, `mine ON sales.of_second`, `only_second ON sales.customer`,
			`"to; ""TO"" using (" ON sales.customer`, `words ON sales.words`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from := everything(t)
			w, copied := like(t, from.source), like(t, from.copied)
			r := w.standing()
			clustertest.Exec(t, w.URL, c.forgets...)
			for _, role := range c.gone {
				delete(r.Names, role)
				clustertest.Exec(t, w.URL, `REASSIGN OWNED BY `+pq.QuoteIdentifier(role)+` TO shop`,
					`DROP OWNED BY `+pq.QuoteIdentifier(role))
			}
			result := check.Must(copied.made(from.text, r, from.large))(t)
			if diff := cmp.Diff(c.policies, result.DroppedPolicies); diff != "" {
				t.Error(diff)
			}
			copied.equal(from, r, w.access())
		})
	}
}

// In a clone the roles have other names, and no others have any rights.
func TestClone(t *testing.T) {
	from := everything(t)
	w, c := like(t, from.source), like(t, from.copied)
	clustertest.Exec(t, w.URL, `SET ROLE shop; REVOKE SELECT ON sales.scratch FROM pg_monitor; RESET ROLE`)
	r := sidecar.Roles{Owner: "clone", Names: map[string]string{}}
	for _, role := range customers {
		r.Names[role] = strings.Replace(role, "shop", "clone", 1)
	}
	check.Must(c.made(from.text, r, from.large))(t)
	c.equal(from, r, strings.ReplaceAll(w.access(), "shop", "clone"))
}

// Superusers own nothing of a customer's, and roles that were buried or made for a job do not stand.
func TestStanding(t *testing.T) {
	w := newWorld(t)
	const digits = "0123456789abcdef0123456789abcdef"
	for _, role := range []string{"pgh_dead_" + digits, "dump_" + digits, "verify_" + digits} {
		clustertest.Exec(t, w.URL, `CREATE ROLE `+role)
		t.Cleanup(func() { clustertest.Exec(t, w.URL, `DROP ROLE `+role) })
	}
	names := w.standing().Names
	for role, stands := range map[string]bool{
		"shop": true, custom: true, "pg_monitor": true, agent: true, "postgres": false, login: false,
		"pgh_dead_" + digits: false, "dump_" + digits: false, "verify_" + digits: false,
	} {
		if (names[role] == role) != stands {
			t.Errorf("%s stands: %t", role, !stands)
		}
	}
}
