package crash_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// unrestorable makes a backup that does not come back equal.
const unrestorable = `CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() ~ '^verify_' THEN RAISE EXCEPTION 'no'; END IF; RETURN true; END $$;
	CREATE TABLE trapped (n int CHECK (trap())); INSERT INTO trapped VALUES (1)`

// deletionFlow deletes a database, which must come to be whatever happens; or it is canceled on the way, or must fail.
type deletionFlow struct {
	restorable
	end     operation.Status
	release func()
}

func (f *deletionFlow) ready(t *testing.T, w *world) {
	f.release = func() {}
	f.model = database.Managed
	f.user = w.newUser(t, 1)
	if f.end == operation.Failed {
		f.more = unrestorable
	}
	f.create(t, w)
	for _, route := range []string{"delete", "recover"} {
		must(w.Admin(soon(t), "enroll", "--database", string(f.db.ID), "--route", route))(t)
	}
}

func (f *deletionFlow) act(t *testing.T, w *world, api *stack.Host) {
	if f.end == operation.Canceled {
		f.release = f.holdUp(t, w)
	}
	asked, err := f.user.at(api).Databases.Delete(soon(t), f.db.ID)
	mayHaveFailed(t, err)
	if f.end != operation.Canceled {
		return
	}
	eventually(t, "the backup is held up", func() (bool, string) {
		o := f.operation(t, api, asked.Operation.ID)
		return stage.Stage(o.Stage) == deletion.BackingUp, o.Stage
	})
	must(f.user.at(api).Operations.Cancel(soon(t), asked.Operation.ID))(t)
}

// holdUp has an administrator, whom the agent does not end, keep the dump waiting until release.
func (f *deletionFlow) holdUp(t *testing.T, w *world) (release func()) {
	t.Helper()
	db := stacktest.Open(t, w.Server.URL(f.db.Name))
	tx := must(db.Begin())(t)
	must(tx.ExecContext(soon(t), "LOCK TABLE word IN ACCESS EXCLUSIVE MODE"))(t)
	return func() {
		_ = tx.Rollback() // it may have been ended
		_ = db.Close()
	}
}

func (f *deletionFlow) repeat(t *testing.T, w *world) {
	_, err := f.user.at(w.api).Databases.Delete(soon(t), f.db.ID)
	var refusal *apiclient.Error
	if err != nil && (!errors.As(err, &refusal) ||
		refusal.Code != fault.DatabaseStateConflict && refusal.Code != fault.DatabaseNotFound) {
		t.Fatal(err)
	}
}

func (f *deletionFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.release()
	list := must(f.user.at(api).Databases.ListDeleted().Page(soon(t), apiclient.Page{}))(t).Data
	if f.end == operation.Succeeded {
		if len(list) != 1 || list[0].RecoveryStatus != deletion.Recoverable {
			t.Errorf("the deleted databases are %+v", list)
		}
		return
	}
	if o := f.operations(t, api)[0]; o.Status != f.end || o.Type != deletion.KindDelete || len(list) > 0 {
		t.Errorf("it is %+v, and deleted are %+v", o, list)
	}
	f.says(t, w, "old")
}

// gone deletes the database.
func (f *deletionFlow) gone(t *testing.T, w *world) {
	t.Helper()
	asked := must(f.user.at(w.api).Databases.Delete(soon(t), f.db.ID))(t)
	eventually(t, "the database is deleted", func() (bool, string) {
		o := f.operation(t, w.api, asked.Operation.ID)
		return o.Status == operation.Succeeded, fmt.Sprintf("%+v", o)
	})
}

// recoveryFlow recovers a deleted database; or the agent refuses that, until what is in the way is gone.
type recoveryFlow struct {
	deletionFlow
	refused bool
}

func (f *recoveryFlow) ready(t *testing.T, w *world) {
	f.deletionFlow.ready(t, w)
	f.gone(t, w)
	if f.refused {
		must(w.server.ExecContext(soon(t), "CREATE DATABASE "+pq.QuoteIdentifier(f.db.Name)))(t)
		w.foreign[f.db.Name] = true
	}
}

func (f *recoveryFlow) send(t *testing.T, api *stack.Host) error {
	t.Helper()
	_, err := f.user.at(api).Databases.Recover(soon(t), f.db.ID)
	return err
}

func (f *recoveryFlow) act(t *testing.T, _ *world, api *stack.Host) { mayHaveFailed(t, f.send(t, api)) }

func (f *recoveryFlow) repeat(t *testing.T, w *world) { noError(t, f.send(t, w.api)) }

func (f *recoveryFlow) check(t *testing.T, w *world, api *stack.Host) {
	if f.refused {
		var failed int
		noError(t, w.meta.QueryRowContext(soon(t), `SELECT count(*) FROM operations
			WHERE database_id = $1 AND kind = 'recover' AND status = 'failed'`, f.db.ID).Scan(&failed))
		if failed != 1 {
			t.Errorf("%d recoveries have failed", failed)
		}
		must(w.server.ExecContext(soon(t), "DROP DATABASE "+pq.QuoteIdentifier(f.db.Name)))(t)
		delete(w.foreign, f.db.Name)
		noError(t, f.send(t, api))
		w.quiet(t)
	}
	if status := f.status(t, api); status != database.Active {
		t.Errorf("the database is %s", status)
	}
	f.says(t, w, "old")
}

// purgeFlow lets the time of a deleted database end.
type purgeFlow struct{ deletionFlow }

func (f *purgeFlow) ready(t *testing.T, w *world) {
	f.deletionFlow.ready(t, w)
	f.gone(t, w)
}

func (f *purgeFlow) act(t *testing.T, w *world, _ *stack.Host) {
	f.over(t, w)
	f.begun(t, w)
}

// over has the time end in which the database can be recovered.
func (f *purgeFlow) over(t *testing.T, w *world) {
	t.Helper()
	const due = "UPDATE tombstones SET purge_after = now() - interval '1 second' WHERE database_id = $1"
	must(w.meta.ExecContext(soon(t), due, f.db.ID))(t)
}

func (f *purgeFlow) begun(t *testing.T, w *world) {
	t.Helper()
	eventually(t, "the purge has begun", func() (bool, string) {
		var begun bool
		err := w.meta.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM operations
			WHERE database_id = $1 AND kind = 'purge')`, f.db.ID).Scan(&begun)
		return begun && err == nil, fmt.Sprint(err)
	})
}

func (f *purgeFlow) check(t *testing.T, w *world, api *stack.Host) {
	_, err := f.user.at(api).Databases.Recover(soon(t), f.db.ID)
	refused(t, "a purged database", err, fault.DatabaseNotFound)
	var left int
	noError(t, w.meta.QueryRowContext(soon(t), "SELECT count(*) FROM databases WHERE id = $1", f.db.ID).Scan(&left))
	if left > 0 {
		t.Error("its record is left")
	}
}

// refusedPurge is refused by the agent, until an administrator has given the database the name back that it has there.
type refusedPurge struct{ purgeFlow }

func (f *refusedPurge) act(t *testing.T, w *world, api *stack.Host) {
	as, other := "deleted_"+id.Compact(f.db.ID), "renamed_"+id.Compact(f.db.ID)
	must(w.server.ExecContext(soon(t), "ALTER DATABASE "+as+" RENAME TO "+other))(t)
	f.purgeFlow.act(t, w, api)
	mended := make(chan error, 1)
	t.Cleanup(func() { noError(t, <-mended) })
	ctx, done := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	go func() {
		defer done()
		mended <- f.mend(ctx, w, other, as)
	}()
}

// mend does so once the operation says why it does not go on.
func (f *refusedPurge) mend(ctx context.Context, w *world, from, to string) error {
	for code := ""; code == ""; {
		err := w.meta.QueryRowContext(ctx, "SELECT error_code FROM operations WHERE database_id = $1 AND kind = 'purge'",
			f.db.ID).Scan(&code)
		if err != nil {
			return err
		}
	}
	_, err := w.server.ExecContext(ctx, "ALTER DATABASE "+from+" RENAME TO "+to)
	return err
}

// stuckDeletion is refused by the agent, and cannot be taken back until an administrator has removed the obstacle.
type stuckDeletion struct{ deletionFlow }

func (f *stuckDeletion) elevate(ctx context.Context, w *world, word string) error {
	_, err := w.server.ExecContext(ctx, "ALTER ROLE "+pq.QuoteIdentifier(f.db.Username)+" "+word)
	return err
}

func (f *stuckDeletion) ready(t *testing.T, w *world) {
	f.end = operation.Failed
	f.deletionFlow.ready(t, w)
	noError(t, f.elevate(soon(t), w, "SUPERUSER"))
}

// act removes the obstacle once the record says that nobody knows who gets in.
func (f *stuckDeletion) act(t *testing.T, w *world, api *stack.Host) {
	f.deletionFlow.act(t, w, api)
	mended := make(chan error, 1)
	t.Cleanup(func() { noError(t, <-mended) })
	ctx, done := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	go func() {
		defer done()
		mended <- f.mend(ctx, w)
	}()
}

func (f *stuckDeletion) mend(ctx context.Context, w *world) error {
	for status := ""; status != string(database.Error); {
		if err := w.meta.QueryRowContext(ctx, "SELECT status FROM databases WHERE id = $1", f.db.ID).Scan(&status); err != nil {
			return err
		}
	}
	return f.elevate(ctx, w, "NOSUPERUSER")
}

// deleting are the cases of deletions, recoveries and purges that somebody dies over.
func deleting() (cases []killing) {
	to := func(end operation.Status) func() flow { return func() flow { return &deletionFlow{end: end} } }
	done, failed, canceled := to(operation.Succeeded), to(operation.Failed), to(operation.Canceled)
	back, refusal := func() flow { return &recoveryFlow{} }, func() flow { return &recoveryFlow{refused: true} }
	purge, stuck := func() flow { return &purgeFlow{} }, func() flow { return &stuckDeletion{} }
	hindered := func() flow { return &refusedPurge{} }
	cases = append(cases, kill(inAPI, "delete", done(), work.Reserved(deletion.KindDelete)),
		kill(inAPI, "recover", back(), work.Reserved(deletion.KindRecover)),
		kill(inBatch, "purge", purge(), work.Reserved(deletion.KindPurge)))
	// The core's tests kill at each of these points, on fakes: a sample counts those before as one, and those after.
	add := func(k operation.Kind, what string, f func() flow, names ...string) {
		cases = append(cases, aroundCommits(inBatch, k, what, f, names...)...)
	}
	add(deletion.KindDelete, "delete", done, "access", "backup", "isolate", "backing_up", "isolating", "succeeded")
	add(deletion.KindDelete, "delete without a backup", failed, "undo", "close", "generation", "failing", "failed")
	add(deletion.KindDelete, "cancel", canceled, "canceling", "canceled")
	add(deletion.KindDelete, "delete that is not taken back", stuck, "lost")
	add(deletion.KindRecover, "recover", back, "rejoin", "succeeded")
	add(deletion.KindRecover, "recover in vain", refusal, "failing", "close", "failed")
	add(deletion.KindPurge, "purge", purge, "purge", "succeeded")
	add(deletion.KindPurge, "purge that is refused", hindered, "refused")
	return cases
}
