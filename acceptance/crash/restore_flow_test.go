package crash_test

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

// restorable is a database with a backup in which a word is another one than now. The cases of a stack share it: whatever befell
// one restore, the next one brings the same back.
type restorable struct {
	model database.RoleModel
	more  string // statements before the backup
	then  bool   // a moment is restored, and no backup
	guest
	file backup.Filename
}

// uncopyable makes a backup that can be verified, and not restored.
const uncopyable = `CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() ~ '^restore_' THEN RAISE EXCEPTION 'no'; END IF; RETURN true; END $$;
	CREATE TABLE trapped (n int CHECK (trap())); INSERT INTO trapped VALUES (1)`

// open makes the database and its backup.
func (r *restorable) open(t *testing.T, w *world) {
	t.Helper()
	if r.file == "" {
		r.user = w.newUser(t, 1)
		r.create(t, w)
		r.backUpNow(t, w)
	}
}

// create makes the database.
func (r *restorable) create(t *testing.T, w *world) {
	t.Helper()
	name := newName("back")
	r.db = must(r.user.at(w.api).Databases.Create(soon(t), wire.CreateDatabase{
		Name: name, DisplayName: name, RoleModel: &r.model,
	}))(t)
	if r.model == database.SingleLogin {
		must(w.Admin(soon(t), "enroll", "--database", string(r.db.ID), "--route", "restore"))(t)
	}
	r.asOwner(t, w, "CREATE TABLE word AS SELECT 'old' AS said; "+r.more)
}

// backUpNow makes the backup. It waits for nothing else.
func (r *restorable) backUpNow(t *testing.T, w *world) {
	t.Helper()
	o := r.startBackup(t, w.api)
	eventually(t, "the backup is made", func() (bool, string) {
		o = r.operation(t, w.api, o.ID)
		return o.Status.Final(), o.Stage
	})
	list := r.backups(t, w.api)
	if len(list) != 1 || list[0].VerifiedAt == nil {
		t.Fatalf("%+v made %+v", o, list)
	}
	r.file = list[0].Filename
}

// asOwner runs statements on a connection of their own.
func (r *restorable) asOwner(t *testing.T, w *world, statements string) {
	t.Helper()
	db := w.customer(t, r.db.ConnectionString)
	must(db.ExecContext(soon(t), statements))(t)
	noError(t, db.Close())
}

// says waits until the owner is let in, and fails the test unless the word is this one. After a crash of PostgreSQL the pooler
// may refuse for a second.
func (r *restorable) says(t *testing.T, w *world, want string) {
	t.Helper()
	var said string
	eventually(t, "the owner is let in", func() (bool, string) {
		db := w.customer(t, r.db.ConnectionString)
		err := db.QueryRowContext(soon(t), "SELECT said FROM word").Scan(&said)
		return err == nil && db.Close() == nil, fmt.Sprint(err)
	})
	if said != want {
		t.Errorf("the word is %q, want %q", said, want)
	}
}

// restoreFlow restores the database, which must come to be whatever happens; or it is canceled on the way, or must fail.
type restoreFlow struct {
	*restorable
	end     operation.Status
	refused bool // the agent does not switch
	stopped bool // the database is, before and after
	key     string
	known   int // operations of before
	at      string
	before  map[string]*sql.Conn
}

func (f *restoreFlow) managed() bool { return f.model == database.Managed }

func (f *restoreFlow) owner() login { return login{f.db.Name, f.db.Username, f.db.Password} }

// aside is what an administrator has set for the database, which the agent may not set.
func (r *restorable) aside(t *testing.T, w *world, how string) {
	t.Helper()
	must(w.server.ExecContext(soon(t), fmt.Sprintf("ALTER DATABASE %q %s", r.db.Name, how)))(t)
}

func (f *restoreFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	if f.then {
		f.awaitMoment(t, w)
	}
	f.asOwner(t, w, "UPDATE word SET said = 'new'")
	if f.refused {
		f.aside(t, w, "SET log_min_messages = 'error'")
	}
	f.user.Key = must(w.NewKey(soon(t), f.user.Account))(t) // one of before may have no reservation left
	f.key, f.known = newName("restore"), len(f.operations(t, w.api))
	f.before = map[string]*sql.Conn{}
	if f.stopped {
		f.set(t, w.api, "stop")
		return
	}
	for way, db := range w.ways(t, f.owner()) {
		conn := must(db.Conn(soon(t)))(t)
		t.Cleanup(func() { _ = conn.Close() }) // it may have been ended
		noError(t, conn.PingContext(soon(t)))
		f.before[way] = conn
	}
}

// awaitMoment takes a moment at which the word is the old one.
func (f *restoreFlow) awaitMoment(t *testing.T, w *world) {
	t.Helper()
	eventually(t, "a moment that can be had back", func() (bool, string) {
		window, err := f.user.at(w.api).Recovery.GetWindow(soon(t), f.db.ID)
		return err == nil && window.From != nil && window.From.Before(time.Now()), fmt.Sprint(window, err)
	})
	f.at = time.Now().Format(time.RFC3339Nano)
	time.Sleep(10 * time.Millisecond)
}

// reserve asks for the restore. A managed one can be asked for again.
func (f *restoreFlow) reserve(t *testing.T, api *stack.Host) (wire.Operation, error) {
	t.Helper()
	calls := f.user.at(api).Restores
	if f.managed() {
		body := wire.ReserveRestore{BackupFilename: f.file, ConfirmShrink: true}
		if f.then {
			body.BackupFilename, body.PointInTime = "", &f.at
		}
		got, err := calls.Reserve(soon(t), f.db.ID, body, apiclient.IdempotencyKey(f.key))
		return got.Operation, err
	}
	got, err := calls.Restore(soon(t), f.db.ID, f.file, wire.RestoreBackup{ConfirmDisconnect: true, ConfirmShrink: true})
	return got.Operation, err
}

func (f *restoreFlow) act(t *testing.T, w *world, api *stack.Host) {
	o, err := f.reserve(t, api)
	if mayHaveFailed(t, err); err != nil || !f.managed() {
		return
	}
	if f.end == operation.Canceled {
		o = f.advances(t, w, api, o, func(o wire.Operation) bool { return o.Status == operation.Running })
		if _, err := f.user.at(api).Operations.Cancel(soon(t), o.ID); err != nil {
			mayHaveFailed(t, err)
		}
		return
	}
	f.advances(t, w, api, o, never)
}

// isReady and never say how far a restore is to be driven.
func isReady(o wire.Operation) bool { return o.Stage == "ready" }
func never(wire.Operation) bool     { return false }

// advances drives a restore as its caller does, until it is as wanted, or has ended, or somebody has died over it.
func (f *restoreFlow) advances(
	t *testing.T, w *world, api *stack.Host, o wire.Operation, enough func(wire.Operation) bool,
) wire.Operation {
	t.Helper()
	for end := time.Now().Add(patience); api.Running() && w.agent.Running() && time.Now().Before(end); {
		now, err := f.user.at(api).Restores.Advance(soon(t), o.ID)
		var told *apiclient.Error
		if errors.As(err, &told) && told.Code != fault.AgentError && told.Code != fault.RestoreOperationTerminal {
			t.Fatalf("an advance: %v", err)
		}
		if err != nil && codeOf(err) != fault.AgentError {
			return o // nobody answers any more, or it is over
		}
		if err == nil {
			o = now
		}
		if o.Status.Final() || enough(o) {
			return o
		}
		time.Sleep(20 * time.Millisecond)
	}
	return o
}

// repeat has the caller come back.
func (f *restoreFlow) repeat(t *testing.T, w *world) {
	if !f.managed() || f.end == operation.Canceled {
		return
	}
	o, err := f.reserve(t, w.api)
	if codeOf(err) == fault.RestoreOperationTerminal && f.end == operation.Failed {
		return
	}
	noError(t, err)
	f.advances(t, w, w.api, o, never)
}

func (f *restoreFlow) check(t *testing.T, w *world, api *stack.Host) {
	all := f.operations(t, api)
	if len(all) != f.known+1 || all[0].Status != f.end || (all[0].Error != nil) != (f.end == operation.Failed) {
		t.Fatalf("the restore, %d operations later: %+v, %+v", len(all)-f.known, all[0], all[0].Error)
	}
	if f.managed() {
		again, err := f.user.at(api).Restores.Advance(soon(t), all[0].ID)
		if succeeded := f.end == operation.Succeeded; succeeded && (err != nil || again.Status != f.end) ||
			!succeeded && codeOf(err) != fault.RestoreOperationTerminal {
			t.Errorf("one more advance: %+v, %v", again, err)
		}
	}
	if f.stopped {
		if f.comesIn(t, w) == nil || f.status(t, api) != database.Stopped {
			t.Error("the restore has opened a database that was stopped")
		}
		f.set(t, api, "start")
	}
	word := map[bool]string{true: "old", false: "new"}[f.end == operation.Succeeded]
	f.says(t, w, word)
	if f.end == operation.Succeeded {
		ended(t, f.before)
	}
	if f.refused {
		f.aside(t, w, "RESET log_min_messages")
	}
	for _, conn := range f.before {
		_ = conn.Close()
	}
}

// leftFlow is a managed restore whose caller goes away for good: before its switch, after which the restore is canceled, or when
// its switch has been intended, after which the batch host makes it.
type leftFlow struct{ restoreFlow }

func (f *leftFlow) repeat(*testing.T, *world) {}

func (f *leftFlow) leave(t *testing.T, w *world) {
	o := must(f.reserve(t, w.api))(t)
	o = f.advances(t, w, w.api, o, isReady)
	if !isReady(o) {
		t.Fatalf("it is %+v, %+v", o, o.Error)
	}
	if f.end == operation.Succeeded {
		host := must(w.StartAPI(soon(t), work.After(restores.Kind, "switching")))(t)
		_, err := f.user.at(host).Restores.Advance(soon(t), o.ID)
		mayHaveFailed(t, err)
		dies(t, host.Process, "the intent of the switch")
	}
	w.hurry(t)
}

// swept waits until the agent has dropped what nobody wants any more.
func (w *world) swept(t testing.TB) {
	t.Helper()
	const copies = "SELECT coalesce(string_agg(name, ' '), '') FROM ledger.copy"
	eventually(t, "no copy is left", func() (bool, string) {
		var left string
		err := w.maintenance.QueryRowContext(t.Context(), copies).Scan(&left)
		return err == nil && left == "", cmp.Or(left, fmt.Sprint(err))
	})
}
