package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What an operator orders is queued for batch hosts; with --wait, the command goes on until it has ended.
func TestAnOperatorOrdersWhatAnOwnerCan(t *testing.T) {
	w := newConsole(t)
	ada := w.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=free")
	w.shared(text(t, ada, "accountId"), text(t, ada, "userId"))
	stop := []string{"database", "stop", "--database=shop"}
	w.refuses(`"reason" not set`, stop...)
	w.refuses("reason: must", append(stop, "--reason= ")...)
	queued := w.does(append(stop, "--reason=a ticket")...)
	if queued["type"] != "lifecycle" || queued["status"] != "queued" {
		t.Errorf("got %v", queued)
	}
	w.refuses("operation", "database", "backup", "--database=shop", "--reason=a ticket") // another one is open
	w.does("operation", "cancel", "--operation="+text(t, queued, "operationId"))
	there := w.does("database", "start", "--database=shop", "--reason=a ticket")
	if there["status"] != "active" || there["operationId"] != nil {
		t.Errorf("one that is active: %v", there)
	}

	ended := make(chan error)
	go func() {
		_, err := w.run(append(stop, "--reason=a ticket", "--wait")...)
		ended <- err
	}()
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if open := w.lists("operation", "list", "--kind=lifecycle"); len(open) == 1 {
			w.does("operation", "cancel", "--operation="+text(t, open[0], "operationId"))
			break
		}
		if time.Now().After(until) {
			t.Fatal("nothing was ordered")
		}
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was canceled") {
		t.Errorf("the command that waited: %v", err)
	}

	restore := []string{"database", "restore", "--database=shop", "--reason=a ticket"}
	w.refuses("needs --yes", append(restore, "--backup=20260101_000000.sql.gz")...)
	w.refuses("INVALID_BACKUP_FILENAME", append(restore, "--backup=latest", "--yes")...)
	w.refuses("no such backup", append(restore, "--backup=20200101_000000.sql.gz", "--yes")...)
}

func TestAnOperatorMakesADatabase(t *testing.T) {
	w := newConsole(t)
	w.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=pro")
	w.does("server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:1", "--agent-secret="+agentSecret,
		"--public-host=h", "--connections=0")
	create := []string{"database", "create", "--account=Ada", "--name=books", "--reason=a ticket", "--server=db1"}
	w.refuses("roleModel: must be", append(create, "--role-model=none")...)
	w.does("server", "disable", "--server=db1")
	w.refuses("server: db1 is disabled", create...)
	w.does("server", "set", "--server=db1", "--enabled")
	w.refuses("server: db1 has not said which PostgreSQL it has", create...)
	w.refuses("postgresVersion: must be", append(create, "--postgres-version=9")...)
	if left := w.lists("database", "list", "--account=Ada"); len(left) != 0 {
		t.Errorf("left is %v", left)
	}
}

func TestAnOperatorClonesADatabase(t *testing.T) {
	w := newConsole(t)
	ada := w.does("account", "create", "--email=ada@example.com", "--name=Ada", "--plan=pro")
	w.shared(text(t, ada, "accountId"), text(t, ada, "userId"))
	clone := []string{"database", "clone", "--database=shop", "--name=copy", "--reason=a ticket"}
	w.refuses("server: ", append(clone, "--server=none")...)
	w.refuses("server: db1 has not said which PostgreSQL it has", append(clone, "--server=db1")...)
	clustertest.Exec(t, w.url, "UPDATE servers SET postgres_version = 16") // as if its agent had answered
	made := w.does(append(clone, "--server=db1")...)
	if made["status"] != "queued" || made["name"] != "copy" || made["username"] != "copy" || made["password"] == "" {
		t.Errorf("got %v", made)
	}
	if open := w.lists("operation", "list", "--kind=clone"); len(open) != 1 || open[0]["operationId"] != made["operationId"] {
		t.Errorf("open are %v", open)
	}
	w.refuses("operation", append(clone, "--name=other")...) // another one is open
}
