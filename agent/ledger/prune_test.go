package ledger

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// speak has the ledger admit a command under an epoch, and says what it answered.
func speak(t *testing.T, db *sql.DB, operation string, kind command.Kind, epoch int) (verdict string) {
	t.Helper()
	resource := "database/" + operation
	if kind == (command.Close{}).About().Kind {
		resource = command.OperationResource(id.OperationID(operation))
	}
	err := db.QueryRowContext(t.Context(), "SELECT verdict FROM ledger.admit($1, $2, $3, 'step', $4, 1, $5, 'hash')",
		operation, epoch, kind == command.Close{}.About().Kind, resource, string(kind)).Scan(&verdict)
	check.NoError(t, err)
	return verdict
}

const (
	finish = "UPDATE ledger.command SET result = '{}' WHERE operation_id = $1"
	shut   = "UPDATE ledger.operation SET closed = true WHERE id = $1"
	undone = "UPDATE ledger.command SET result = '{}' WHERE operation_id = $1 AND kind = 'operation.close'"
	stands = `INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, backup_key)
		VALUES ($1, $1, 'managed', 0, $1, decode(repeat('6b', 32), 'hex'))`
	backedUp = "INSERT INTO ledger.job (operation_id, step, kind, database_id, payload) VALUES ($1, 's', 'k', 'd', '{}')"
	longAgo  = "UPDATE ledger.operation SET spoken_at = now() - interval '30 days 1 second' WHERE id = $1"
	lately   = "UPDATE ledger.operation SET spoken_at = now() - interval '29 days 23 hours' WHERE id = $1"
)

func TestPruneForgetsLoginsRemovedLongAgo(t *testing.T) {
	db := ledgertest.New(t)
	x := &Ledger{db: db}
	ledgertest.Exec(t, db, "INSERT INTO pooler.gate VALUES ('lately', 'd', false), ('long_ago', 'd', false)")
	ledgertest.Exec(t, db, "DELETE FROM pooler.gate")
	ledgertest.Exec(t, db, "UPDATE pooler.former SET gone = now() - interval '30 days 1 second' WHERE login = 'long_ago'")
	ledgertest.Exec(t, db, "UPDATE pooler.former SET gone = now() - interval '29 days 23 hours' WHERE login = 'lately'")
	check.Must(x.Prune(t.Context()))(t)
	left, err := pg.Column(t.Context(), x.db, "SELECT login FROM pooler.former")
	if err != nil || !slices.Equal(left, []string{"lately"}) {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestPruneForgetsWhatEndedLongAgo(t *testing.T) {
	db := ledgertest.New(t)
	x := &Ledger{db: db}
	makeAndClose := []command.Kind{command.EnsureDatabase{}.About().Kind, command.Close{}.About().Kind}
	cases := map[string]struct {
		kinds      []command.Kind
		statements []string
		forgotten  bool
	}{
		"finished":           {[]command.Kind{command.SetAccess{}.About().Kind}, []string{finish, longAgo}, true},
		"backup":             {[]command.Kind{command.Backup{}.About().Kind}, []string{finish, backedUp, longAgo}, true},
		"closed":             {makeAndClose, []string{shut, undone, longAgo}, true},
		"finished lately":    {[]command.Kind{command.SetAccess{}.About().Kind}, []string{finish, lately}, false},
		"under way":          {[]command.Kind{command.Backup{}.About().Kind}, []string{longAgo}, false},
		"half undone":        {makeAndClose, []string{shut, longAgo}, false},
		"made what stands":   {[]command.Kind{command.EnsureDatabase{}.About().Kind}, []string{finish, stands, longAgo}, false},
		"spoke again lately": {[]command.Kind{command.SetAccess{}.About().Kind}, []string{finish, longAgo}, false},
	}
	var want []string
	for name, c := range cases {
		for _, kind := range c.kinds {
			speak(t, db, name, kind, 2)
		}
		for _, statement := range c.statements {
			ledgertest.Exec(t, db, statement, name)
		}
		if c.forgotten {
			want = append(want, name)
		}
	}
	if got := speak(t, db, "spoke again lately", command.SetAccess{}.About().Kind, 2); got != "done" {
		t.Error("the same command again: ", got)
	}
	if n, err := x.Prune(t.Context()); err != nil || n != int64(len(want)) {
		t.Errorf("%d forgotten instead of %d: %v", n, len(want), err)
	}
	for name, c := range cases {
		for what, query := range map[string]string{
			"operation": "SELECT id FROM ledger.operation WHERE id = $1",
			"job":       "SELECT operation_id FROM ledger.job WHERE operation_id = $1",
			"command":   "SELECT step FROM ledger.command WHERE operation_id = $1",
			"close":     "SELECT kind FROM ledger.generation WHERE resource = 'operation/' || $1",
		} {
			expected := !c.forgotten && (what == "operation" || what == "command" ||
				what == "close" && slices.Contains(c.kinds, command.Close{}.About().Kind))
			left, err := pg.Column(t.Context(), x.db, query, name)
			if err != nil || len(left) > 0 != expected {
				t.Errorf("%s: %s left: %v, %v", name, what, left, err)
			}
		}
		if !c.forgotten {
			if got := speak(t, db, name, c.kinds[0], 1); got != "fenced" {
				t.Errorf("%s: an older worker is answered %s", name, got)
			}
		}
	}
	const generations = "SELECT count(*) FROM ledger.generation WHERE resource = 'database/finished'"
	if got := check.Must(pg.One[int](t.Context(), db, generations))(t); got != 1 {
		t.Error("the generation of a database is forgotten")
	}
}
