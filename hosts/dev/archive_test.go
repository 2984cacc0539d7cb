package dev_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// A database of the development host can be had back as it was at a moment from an object store, also where the state folder is
// behind a symbolic link, and after the host was killed.
func TestADatabaseIsHadBackAsItWas(t *testing.T) {
	s := &survivor{developer: newDeveloper(t, check.Must(toolchain.Root())(t), stacktest.Build(t, "pgherd"))}
	folder := filepath.Join(s.dir, "state")
	check.NoError(t, errors.Join(os.Mkdir(folder, 0o755), os.Symlink(folder, filepath.Join(s.dir, ".pgherd"))))
	objects := objectstore.Start(t)
	s.flags = append(s.flags, objects.Flags("dev")...)
	s.begin(t)
	s.window(t, s.id) // the first copy is made
	s.runs(t, "CREATE TABLE item AS SELECT 1 AS n")
	at := time.Now()
	time.Sleep(10 * time.Millisecond)
	s.runs(t, "DELETE FROM item")

	check.NoError(t, s.cmd.Process.Kill())
	<-s.ended
	check.Eventually(t, "PostgreSQL outlives its host", func() bool {
		return cluster.CheckPort("127.0.0.1", s.port(t)) == nil
	})
	s.start()
	defer s.stop()
	if w := s.window(t, s.id); at.Before(*w.From) || len(w.Gaps) != 0 {
		t.Errorf("its window is %+v", w)
	}
	copied := s.clone(t, at)
	var items int
	check.NoError(t, copied.QueryRow("SELECT count(*) FROM item").Scan(&items))
	if items != 1 {
		t.Errorf("the clone has %d items", items)
	}
	if stored, err := os.ReadDir(filepath.Join(objects.Objects(), "dev", "archive")); err != nil || len(stored) != 1 {
		t.Errorf("the store has %d archives (%v)", len(stored), err)
	}
}

// port is PostgreSQL's.
func (s *survivor) port(t *testing.T) int {
	t.Helper()
	return check.Must(strconv.Atoi(strings.TrimPrefix(s.flags[5], "--postgres-port=")))(t)
}

// window waits until something of a database can be had back.
func (s *survivor) window(t *testing.T, of id.DatabaseID) (w wire.RecoveryWindow) {
	t.Helper()
	check.Eventually(t, "there is no window", func() (there bool) {
		var err error
		w, err = s.api(t).Recovery.GetWindow(t.Context(), of)
		return err == nil && w.From != nil
	})
	return w
}

// runs has the customer run a statement.
func (s *survivor) runs(t *testing.T, statement string) {
	t.Helper()
	db := check.Must(sql.Open("postgres", s.url))(t)
	defer db.Close()
	check.Must(db.ExecContext(t.Context(), statement))(t)
}

// clone opens a clone of the database as of a moment.
func (s *survivor) clone(t *testing.T, at time.Time) *sql.DB {
	t.Helper()
	moment := at.Format(time.RFC3339Nano)
	begun := check.Must(s.api(t).Databases.Clone(t.Context(), s.id, wire.CloneDatabase{
		Name: "then", DisplayName: "then", PointInTime: &moment,
	}))(t)
	s.ends(t, begun.Operation.ID)
	db := check.Must(sql.Open("postgres", begun.Database.ConnectionString+"&sslrootcert="+s.facts["PGHERD_CA_FILE"]))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ends waits until an operation has succeeded.
func (s *survivor) ends(t *testing.T, op id.OperationID) {
	t.Helper()
	check.Eventually(t, "the operation does not end", func() bool {
		o, err := s.api(t).Operations.Get(t.Context(), op)
		if err == nil && o.Status == operation.Failed {
			t.Fatalf("it is %+v: %+v", o, o.Error)
		}
		return err == nil && o.Status == operation.Succeeded
	})
}
