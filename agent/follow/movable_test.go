package follow_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// Tables whose rows PostgreSQL cannot tell apart, or not by every type, are in the way, and no others.
func TestTablesInTheWay(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	for _, statement := range []string{
		`CREATE TABLE a_key (id int PRIMARY KEY)`, `CREATE TABLE b_none (id int)`,
		`CREATE TABLE c_late (id int PRIMARY KEY DEFERRABLE)`,
		`CREATE TABLE d_full (a int, b varchar(3), c text[], d numeric, e jsonb, f int4range)`,
		`ALTER TABLE d_full REPLICA IDENTITY FULL`,
		`CREATE TABLE e_json (a int, j json)`, `ALTER TABLE e_json REPLICA IDENTITY FULL`,
		`CREATE TABLE f_points (p point[])`, `ALTER TABLE f_points REPLICA IDENTITY FULL`,
		`CREATE TABLE g_index (a int NOT NULL UNIQUE)`, `ALTER TABLE g_index REPLICA IDENTITY USING INDEX g_index_a_key`,
		`CREATE TABLE h_nothing (id int PRIMARY KEY)`, `ALTER TABLE h_nothing REPLICA IDENTITY NOTHING`,
		`CREATE DOMAIN own AS json`, `CREATE TABLE i_domain (a own)`, `ALTER TABLE i_domain REPLICA IDENTITY FULL`,
		`CREATE TABLE j_parts (id int) PARTITION BY RANGE (id)`,
	} {
		check.Must(owner.Exec(statement))(t)
	}
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/movable", nil)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, string(text), err)
	}
	var found command.Movable
	check.NoError(t, json.Unmarshal(text, &found))
	var tables []string
	for _, o := range found.Obstacles {
		if o.Kind == command.NoIdentity {
			tables = append(tables, o.Object)
		}
	}
	want := []string{
		"public.b_none", "public.c_late", "public.e_json", "public.f_points", "public.h_nothing", "public.i_domain", "public.j_parts",
	}
	if !slices.Equal(tables, want) {
		t.Errorf("in the way are %v, want %v", tables, want)
	}
	if !slices.ContainsFunc(found.Obstacles, func(o command.Obstacle) bool { return o.Kind == command.NotLogical }) {
		t.Error("a server with wal_level = minimal can be followed")
	}
}
