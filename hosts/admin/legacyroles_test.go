package admin_test

import (
	"fmt"
	"slices"
	"testing"
)

// An activation has commands of its own: routes neither come with it nor bring it.
func TestLegacyRolesAreActivated(t *testing.T) {
	w := newTown(t)
	w.does("enroll", "--database="+blog, "--route=all")
	activated := func(flags ...string) []string {
		return names(w.lists(append([]string{"legacy-roles", "list"}, flags...)...), "databaseId")
	}
	if got := activated(); got != nil {
		t.Errorf("every route activates %v", got)
	}
	for range 2 {
		got := w.does("legacy-roles", "activate", "--database="+w.longName)
		if got["databaseId"] != blog || got["database"] != w.longName || got["activated"] != true {
			t.Errorf("got %v", got)
		}
	}
	w.does("unenroll", "--database="+blog, "--route=all")
	if got := activated(); !slices.Equal(got, []string{blog}) || activated("--account="+w.ada) != nil {
		t.Errorf("activated are %v", got)
	}
	if l := w.lists("legacy-roles", "list"); l[0]["overlay"] != "none" || l[0]["email"] != w.bob || l[0]["status"] != "stopped" {
		t.Errorf("listed is %v", l[0])
	}
	for _, r := range w.lists("enroll", "list", "--account="+w.bobID) {
		if fmt.Sprint(r["routes"]) != "[legacy-roles]" {
			t.Errorf("enrolled is %v", r)
		}
	}
	for _, f := range w.lists("feature", "list") {
		if f["feature"] == "legacy-roles" && (f["enabled"] != false || fmt.Sprint(f["enrolled"]) != "map[legacy-roles:1]") {
			t.Errorf("the feature is %v", f)
		}
	}

	w.refuses("database: has managed SQL roles", "legacy-roles", "activate", "--database="+shop)
	w.refuses("database: no database is called", "legacy-roles", "activate", "--database=nothing")
	w.refuses("route: legacy-roles is no route", "enroll", "--database="+blog, "--route=legacy-roles")
	w.refuses(`"database" not set`, "legacy-roles", "deactivate")

	for range 2 {
		if got := w.does("legacy-roles", "deactivate", "--database="+blog); got["activated"] != false {
			t.Errorf("got %v", got)
		}
	}
	if got := activated(); got != nil {
		t.Errorf("still activated are %v", got)
	}
	var log []string
	for _, e := range w.lists("audit", "list", "--database="+blog) {
		log = append([]string{fmt.Sprint(e["action"])}, log...)
	}
	want := []string{"database.enrolled", "legacy_roles.activated", "database.unenrolled", "legacy_roles.deactivated"}
	if !slices.Equal(log[len(log)-len(want):], want) {
		t.Errorf("the log has %v", log)
	}
}
