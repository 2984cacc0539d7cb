package sidecar

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/backup"
)

func TestGrantsOfRolesThatAreGone(t *testing.T) {
	const table = "-- Name: TABLE t; Type: ACL; Schema: s; Owner: "
	for name, c := range map[string]struct {
		owner, text string
		want        []string
	}{
		"to one": {"shop", `GRANT SELECT ON TABLE s.t TO gone; GRANT SELECT ON TABLE s.t TO rt;`, []string{
			`GRANT SELECT ON TABLE s.t TO "rt2"`,
		}},
		"by one": {"shop", `SET SESSION AUTHORIZATION gone; GRANT SELECT ON TABLE s.t TO rt; RESET SESSION AUTHORIZATION;`, nil},
		"what rests on one": {"shop", `GRANT SELECT ON TABLE s.t TO gone WITH GRANT OPTION; SET SESSION AUTHORIZATION gone;
			GRANT SELECT ON TABLE s.t TO rt WITH GRANT OPTION; RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION rt;
			GRANT SELECT ON TABLE s.t TO PUBLIC;`, nil},
		"the rest of it": {"shop", `GRANT UPDATE ON TABLE s.t TO rt WITH GRANT OPTION; SET SESSION AUTHORIZATION gone;
			GRANT SELECT,DELETE ON TABLE s.t TO rt WITH GRANT OPTION; RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION rt;
			GRANT SELECT,UPDATE(a),DELETE ON TABLE s.t TO PUBLIC;`, []string{
			`GRANT UPDATE ON TABLE s.t TO "rt2" WITH GRANT OPTION`, `GRANT UPDATE(a) ON TABLE s.t TO PUBLIC BY rt2`,
		}},
		"of one": {"gone", `REVOKE ALL ON TABLE s.t FROM gone; GRANT SELECT ON TABLE s.t TO gone;
			GRANT SELECT ON TABLE s.t TO rt WITH GRANT OPTION; GRANT SELECT ON TABLE s.t TO other;
			SET SESSION AUTHORIZATION rt; GRANT SELECT ON TABLE s.t TO shop WITH GRANT OPTION;`, []string{
			`REVOKE SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON TABLE s.t FROM "shop"`,
			`GRANT SELECT ON TABLE s.t TO "shop"`, `GRANT SELECT ON TABLE s.t TO "rt2" WITH GRANT OPTION`,
		}},
		"by the heir": {"gone", `GRANT SELECT ON TABLE s.t TO shop WITH GRANT OPTION; SET SESSION AUTHORIZATION shop;
			GRANT SELECT ON TABLE s.t TO rt;`, []string{
			`GRANT SELECT ON TABLE s.t TO "shop" WITH GRANT OPTION`, `GRANT SELECT ON TABLE s.t TO "rt2"`,
		}},
	} {
		var got []string
		var all grants
		err := newSource(strings.NewReader(table + c.owner + "\n" + c.text)).each(func(st statement) error {
			all = st.parsed.(grants)
			return nil
		})
		for _, g := range testRoles.grants(all.owner, all.list) {
			sql := g.sql()
			if g.grantor != "" {
				sql += " BY " + g.grantor
			}
			got = append(got, sql)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// What pg_dump writes after a former owner and the present one have become the same.
func TestSettled(t *testing.T) {
	about := object{kind: "TYPE", name: "s.t"}
	usage, whole := []privilege{{name: "USAGE"}}, all[about.kind]
	said := func(list []grant) (all []string) {
		for _, g := range settled("shop", list) {
			all = append(all, g.sql())
		}
		slices.Sort(all)
		return all
	}
	back := []grant{
		{object: about, whole: whole, revoke: true, privileges: usage, grantee: "shop"},
		{object: about, privileges: usage, grantee: "shop"},
	}
	if got := said(back); len(got) != 0 {
		t.Errorf("what is as at first needs %v", got)
	}
	taken := []grant{
		{object: about, whole: whole, revoke: true, privileges: usage}, {object: about, privileges: usage, grantee: "rt", option: true},
	}
	want := []string{`GRANT USAGE ON TYPE s.t TO "rt" WITH GRANT OPTION`, `REVOKE USAGE ON TYPE s.t FROM PUBLIC`}
	if diff := cmp.Diff(want, said(taken)); diff != "" {
		t.Error(diff)
	}
}

// Large objects are compared by what is said of each, wherever a range ends.
func TestCompareLargeObjects(t *testing.T) {
	grants := func(grantor, grantee string, privileges ...string) backup.Grant {
		return backup.Grant{Grantor: grantor, Grantee: grantee, Privileges: privileges}
	}
	mine := []backup.Grant{grants("rt", "rt", "SELECT", "UPDATE"), grants("rt", "PUBLIC", "SELECT")}
	now := []backup.Grant{grants("rt2", "rt2", "SELECT", "UPDATE"), grants("rt2", "PUBLIC", "SELECT")}
	gone := []backup.Grant{grants("gone", "gone", "SELECT", "UPDATE"), grants("gone", "other", "SELECT")}
	of := func(first, last uint32, owner string, grants []backup.Grant) backup.LargeObjects {
		return backup.LargeObjects{First: first, Last: last, Owner: owner, Grants: grants}
	}
	was := []backup.LargeObjects{of(1, 2, "gone", gone), of(3, 4, "shop", nil), of(5, 9, "rt", mine)}
	for name, c := range map[string]struct {
		is   []backup.LargeObjects
		want int
	}{
		"the same":          {[]backup.LargeObjects{of(1, 4, "shop", nil), of(5, 9, "rt2", now)}, 0},
		"another owner":     {[]backup.LargeObjects{of(1, 4, "rt2", nil), of(5, 9, "rt2", now)}, 1},
		"another end":       {[]backup.LargeObjects{of(1, 5, "shop", nil), of(6, 9, "rt2", now)}, 3},
		"another privilege": {[]backup.LargeObjects{of(1, 4, "shop", nil), of(5, 9, "rt2", now[:1])}, 1},
		"none":              {nil, 2},
	} {
		if got := testRoles.CompareLargeObjects(was, c.is); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
