package crash_test

import (
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// optInFlow makes the overlay of a database with a single login, whose owner is at work meanwhile.
type optInFlow struct {
	*shared
	outlives bool // PostgreSQL stays, and with it the owner's connection; otherwise nobody waits for the answer
	inTheWay bool // a transaction of the owner's is, until something dies
	session  *sql.Conn
	asked    sync.WaitGroup
}

func (f *optInFlow) ready(t *testing.T, w *world) {
	f.openAccount(t, w)
	f.db = f.newDatabase(t, w)
	f.session = must(w.customer(t, f.db.ConnectionString).Conn(soon(t)))(t)
	t.Cleanup(func() { _ = f.session.Close() }) // a crash of the server ends it
	f.run(t, sharedTable+"; CREATE SCHEMA private; CREATE TABLE private.item (n int); SET search_path = private")
	if f.inTheWay {
		f.run(t, "BEGIN; LOCK TABLE item")
	}
}

func (f *optInFlow) run(t *testing.T, statements string) {
	t.Helper()
	must(f.session.ExecContext(soon(t), statements))(t)
}

func (f *optInFlow) act(t *testing.T, _ *world, api *stack.Host) {
	f.asked.Go(func() {
		_, err := f.user.at(api).LegacyRoles.OptIn(soon(t), f.db.ID)
		mayHaveFailed(t, err)
	})
	if f.outlives {
		f.asked.Wait()
	}
}

// repeat finds nothing opened before the overlay is known to stand.
func (f *optInFlow) repeat(t *testing.T, w *world) {
	f.asked.Wait()
	if f.inTheWay && f.outlives {
		f.run(t, "COMMIT")
	}
	if !f.stands(t, w) {
		_, err := f.tryMake(t, w, w.api, newRole())
		refused(t, "a role without an overlay", err, f.model.conflict())
	}
	f.optIn(t, w)
}

func (f *optInFlow) stands(t *testing.T, w *world) (stands bool) {
	t.Helper()
	const query = "SELECT overlay_status = 'active' FROM databases WHERE id = $1"
	noError(t, w.meta.QueryRowContext(soon(t), query, f.db.ID).Scan(&stands))
	return stands
}

func (f *optInFlow) check(t *testing.T, w *world, _ *stack.Host) {
	made := f.optIn(t, w)
	if again := f.optIn(t, w); again != made || made.Status != database.OverlayActive || made.Generation != 1 {
		t.Errorf("the overlay is %+v, and asked for again %+v", made, again)
	}
	w.logsIn(t, f.db)
	if f.outlives {
		f.run(t, "INSERT INTO item VALUES (1)") // its settings are as they were, too
	}
	f.asOwner(t, w, "CREATE TABLE private.later (n int)")
	for _, profile := range []role.AccessProfile{role.ReadOnly, role.ReadWrite} {
		f.reads(t, w, profile)
	}
}

// reads makes a role that may read what stood before and what came afterwards, in every schema.
func (f *optInFlow) reads(t *testing.T, w *world, profile role.AccessProfile) {
	t.Helper()
	body := wire.CreateRole{DisplayName: newName("role"), AccessProfile: profile, ConnectionLimit: roleLimit}
	var r wire.RevealedRole
	noError(t, persists(soon(t), func() (pending bool, err error) { // The agent may yet find connections that the crash has ended.
		made, err := f.tryMake(t, w, w.api, body)
		if err == nil {
			r, err = f.tryReveal(t, w.api, made.RoleID)
		}
		return false, err
	}))
	f.works(t, w, r)
	db := openOne(t, w.PoolerURL(f.db.Name, r.Username, r.Password))
	must(db.ExecContext(soon(t), "SELECT FROM private.item, private.later"))(t)
	noError(t, db.Close())
}

// optingIn has each part die while an overlay is made. There is nothing to reconcile.
func optingIn(h *shared) (cases []killing) {
	if h.model != legacyRoles {
		return nil
	}
	for _, p := range pointsOf("role.opt_in") {
		cases = append(cases, kill(inAPI, "opt in", &optInFlow{outlives: true, shared: h}, p))
	}
	for _, p := range crash.Points {
		if !strings.HasPrefix(p, "agent.overlay.") {
			continue
		}
		held := p == crash.OverlayLeft
		cases = append(cases, kill(inAgent, "opt in", &optInFlow{outlives: true, inTheWay: held, shared: h}, p))
		cases = append(cases, kill(inServer, "opt in, PostgreSQL crashes", &optInFlow{inTheWay: held, shared: h}, p))
	}
	return cases
}
