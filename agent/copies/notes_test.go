package copies

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What does not come along is told. Only a move brings along what roles have stored.
func TestNotesOfWhatALoadLeavesOut(t *testing.T) {
	t.Parallel()
	tx := check.Must(clustertest.NewDatabase(t).Open(t).Begin())(t)
	defer tx.Rollback()
	check.Must(tx.Exec("SET LOCAL ROLE pg_monitor"))(t) // who may not store everything
	here := check.Must(pg.One[int](t.Context(), tx, version))(t)
	m := backup.Manifest{Settings: []backup.Setting{
		{Name: "unheard_of"}, {Login: "shop", Name: "unheard_of"}, {Login: "shop", Name: "work_mem"},
		{Login: "shop", Name: "x.own"}, {Login: "rt"}, {Login: "rt", Name: "log_statement"},
	}}
	made := sidecar.Result{Lacked: []string{"the privilege MAINTAIN"}, DroppedPolicies: []string{"p ON t"}}
	first := fmt.Sprintf("the privilege MAINTAIN: left out, as PostgreSQL %d has none", here)
	last := "policy p ON t was left out: the database has none of its roles"
	settings := []string{
		fmt.Sprintf("the setting unheard_of of shop was left out: PostgreSQL %d does not know it", here),
		"the setting x.own of shop was left out: it is an extension's, and the login can store it again",
		"the settings of rt were left out: it has stored too many",
		"the setting log_statement of rt was left out: an administrator has to store it again",
	}
	for moving, want := range map[bool][]string{false: {first, last}, true: append(append([]string{first}, settings...), last)} {
		got, err := notes(t.Context(), tx, Request{Moving: moving}, m, made)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("moving, %t: %q, %v", moving, got, err)
		}
	}
}
