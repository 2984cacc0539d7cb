package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// overlaidWorld is a world whose database "shop" has a single login, is activated for additional roles, and may be restored from
// backups and uploads, cloned and deleted. Its table "before" is in a verified backup, its table "after" is not.
type overlaidWorld struct{ *uploader }

// newOverlaidWorld is one whose owner has opted in.
func newOverlaidWorld(t *testing.T) overlaidWorld {
	t.Helper()
	w := newActivatedWorld(t)
	equal(t, "overlay", must(w.LegacyRoles.OptIn(w.ctx, w.here(w.source())))(t).OverlayStatus, database.OverlayActive)
	return w
}

func newActivatedWorld(t *testing.T) overlaidWorld {
	t.Helper()
	w := overlaidWorld{newUploader(t, database.SingleLogin)}
	for _, feature := range []string{"legacy-roles", "clone", "delete", "deleted-recovery"} {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(t, w.Operator.Enroll(w.ctx, w.source(), rollout.All))
	ok(t, w.Operator.ActivateLegacyRoles(w.ctx, w.source()))
	w.server.Load("shop", "CREATE TABLE before (n int);\n")
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	w.work(w.ControlPlane)
	w.server.Load("shop", "CREATE TABLE after (n int);\n")
	return w
}

func (w overlaidWorld) here(db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.LegacyRoles))(w.t)
}

// role makes a role as far as a status.
func (w overlaidWorld) role(db id.DatabaseID, name string, s role.Status) roles.State {
	w.t.Helper()
	r := must(w.LegacyRoles.Create(w.ctx, w.here(db), wanted(name)))(w.t)
	if s != role.Reserved {
		r = must(w.LegacyRoles.Prepare(w.ctx, w.here(db), r.ID))(w.t)
	}
	if s != role.Reserved && s != role.SQLReady {
		equal(w.t, "granted", w.server.SetConnect(r.Username, true), true)
		r = must(w.LegacyRoles.Admit(w.ctx, w.here(db), r.ID))(w.t)
	}
	if s == role.Revoked {
		must(w.LegacyRoles.Change(w.ctx, w.here(db), r.ID, role.Revocation, idempotency.Key("revoke "+name)))(w.t)
	}
	equal(w.t, "status", w.list(db)[len(w.list(db))-1].Status, s)
	return r
}

func (w overlaidWorld) list(db id.DatabaseID) []roles.State {
	w.t.Helper()
	return must(w.LegacyRoles.List(w.ctx, w.here(db), true))(w.t)
}

func (w overlaidWorld) getsIn(r roles.State) bool {
	w.t.Helper()
	password := must(w.LegacyRoles.Reveal(w.ctx, w.here(r.DatabaseID), r.ID))(w.t).Password
	return w.server.CanLogIn(customer, "shop", r.Username, password)
}

// restores asks for a restore from the first backup, or from an upload that is whole.
func (w overlaidWorld) restores(byUpload bool) (operation.Operation, error) {
	w.t.Helper()
	if byUpload {
		return w.complete(w.whole())
	}
	r := must(w.Access.Reach(w.ctx, w.caller, w.source(), account.See, rollout.Restore))(w.t)
	return w.Restores.Start(w.ctx, r, w.copied(), restore.Consents{})
}

// both runs a test for restores from a backup and from an upload.
func both(t *testing.T, test func(t *testing.T, byUpload bool)) {
	t.Run("from a backup", func(t *testing.T) { test(t, false) })
	t.Run("from an upload", func(t *testing.T) { test(t, true) })
}

// What is being done to additional roles keeps a restore from being queued. Their deletion is always a way out.
func TestARestoreOfAnOverlaidDatabaseBesideChanges(t *testing.T) {
	both(t, func(t *testing.T, byUpload bool) {
		w := newOverlaidWorld(t)
		for _, half := range []role.Status{role.Reserved, role.SQLReady} {
			r := w.role(w.source(), string(half), half)
			refused(t, errOf(w.restores(byUpload)), fault.LegacyRoleConflict)
			equal(t, "deleted", must(w.LegacyRoles.Delete(w.ctx, w.here(w.source()), r.ID))(t).Done, true)
		}
		r := w.role(w.source(), "report", role.Ready)
		w.losing("ChangeLogin", 0)
		must(w.LegacyRoles.Change(w.ctx, w.here(w.source()), r.ID, role.Rotation, "rotate"))(t)
		refused(t, errOf(w.restores(byUpload)), fault.LegacyRoleConflict)
		w.keepsOn()
		w.succeeds(must(w.restores(byUpload))(t))
	})
}

// A role that was left half made, and that nobody can delete because the operator has deactivated the database, keeps nobody from
// a restore. When it is activated again, the role is what it was.
func TestARestoreOfADeactivatedDatabase(t *testing.T) {
	both(t, func(t *testing.T, byUpload bool) {
		w := newOverlaidWorld(t)
		db := w.source()
		ready, half := w.role(db, "ready", role.Ready), w.role(db, "half", role.SQLReady)
		refused(t, errOf(w.restores(byUpload)), fault.LegacyRoleConflict)
		here, before, overlay := w.here(db), w.list(db), w.record(db).Overlay
		ok(t, w.Operator.DeactivateLegacyRoles(w.ctx, db))
		refused(t, errOf(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.LegacyRoles)), fault.FeatureNotAvailable)
		w.succeeds(must(w.restores(byUpload))(t))
		ok(t, w.Operator.ActivateLegacyRoles(w.ctx, db))
		w.asBefore(db, before, overlay)
		equal(t, "gets in", w.getsIn(ready), true)
		equal(t, "granted", w.server.SetConnect(half.Username, true), true)
		equal(t, "status", must(w.LegacyRoles.Admit(w.ctx, here, half.ID))(t).Status, role.Ready)
	})
}

// keepsOn has a batch host go on with what is pending.
func (w overlaidWorld) keepsOn() {
	w.t.Helper()
	for range 3 {
		w.clock.Advance(2 * time.Minute)
		w.batch(w.ControlPlane)
	}
}

// While a restore runs, roles do not change. After it they are as they were, with their passwords, and the overlay too.
func TestRolesBesideARestoreOfTheirDatabase(t *testing.T) {
	both(t, func(t *testing.T, byUpload bool) {
		w := newOverlaidWorld(t)
		db := w.source()
		ready := w.role(db, "ready", role.Ready)
		w.role(db, "revoked", role.Revoked)
		before, overlay := w.list(db), w.record(db).Overlay
		o := must(w.restores(byUpload))(t)
		for range 20 {
			if restore.Machine.Of(w.operation(o.ID)) == restore.Loading {
				break
			}
			w.runOnce()
		}
		equal(t, "stage", restore.Machine.Of(w.operation(o.ID)), restore.Loading)
		here := w.here(db)
		for name, do := range map[string]func() error{
			"create": func() error { return errOf(w.LegacyRoles.Create(w.ctx, here, wanted("third"))) },
			"rotate": func() error { return errOf(w.LegacyRoles.Change(w.ctx, here, ready.ID, role.Rotation, "one")) },
			"revoke": func() error { return errOf(w.LegacyRoles.Change(w.ctx, here, ready.ID, role.Revocation, "two")) },
			"delete": func() error { return errOf(w.LegacyRoles.Delete(w.ctx, here, ready.ID)) },
		} {
			if err := do(); !fault.Has(err, fault.LegacyRoleConflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		equal(t, "the overlay that stands", must(w.LegacyRoles.OptIn(w.ctx, here))(t), overlay)
		w.succeeds(o)
		equal(t, "restored", w.server.HasTable("shop", "after"), false)
		w.asBefore(db, before, overlay)
		equal(t, "gets in", w.getsIn(ready), true)
		w.role(db, "third", role.Ready)
	})
}

func (w overlaidWorld) record(db id.DatabaseID) database.Record {
	w.t.Helper()
	return w.reached(db).Record()
}

func (w overlaidWorld) asBefore(db id.DatabaseID, list []roles.State, overlay database.Overlay) {
	w.t.Helper()
	equal(w.t, "overlay", w.record(db).Overlay, overlay)
	same := slices.EqualFunc(w.list(db), list, func(a, b roles.State) bool {
		return a.ID == b.ID && a.Status == b.Status && a.CredentialGeneration == b.CredentialGeneration
	})
	if !same {
		w.t.Errorf("roles %+v, and before %+v", w.list(db), list)
	}
	w.wantFindings()
}

// An opt-in that is unfinished keeps nothing from a restore, a clone or a deletion, and is finished after them.
func TestAnUnfinishedOptInBesideTheRest(t *testing.T) {
	for name, do := range map[string]func(overlaidWorld){
		"a restore":    func(w overlaidWorld) { w.succeeds(must(w.restores(false))(w.t)) },
		"an upload":    func(w overlaidWorld) { w.succeeds(must(w.restores(true))(w.t)) },
		"a clone":      func(w overlaidWorld) { w.succeeds(w.cloned("").Operation) },
		"a recovery":   func(w overlaidWorld) { w.deleted(w.source()); w.wantFindings(); w.recovered(w.source()) },
		"nothing else": func(overlaidWorld) {},
	} {
		for _, carriedOut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, groups made: %t", name, carriedOut), func(t *testing.T) {
				w := newActivatedWorld(t)
				here := w.here(w.source())
				w.failing("EnsureOverlay", 0, fakeagent.ErrReplyLost)
				if carriedOut {
					w.losing("EnsureOverlay", 0)
				}
				refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, here)), fault.AgentError)
				w.server.OnCall(nil)
				do(w)
				equal(t, "overlay", w.record(w.source()).OverlayStatus, database.OverlayReserved)
				w.wantFindings(doctor.OverlayReserved)
				refused(t, errOf(w.LegacyRoles.Create(w.ctx, here, wanted("early"))), fault.LegacyRoleConflict)
				must(w.LegacyRoles.OptIn(w.ctx, here))(t)
				w.role(w.source(), "report", role.Ready)
				w.wantFindings()
			})
		}
	}
}

// A deletion keeps the overlay and the roles, whatever their status is; a purge leaves nothing of them.
func TestDeletionOfAnOverlaidDatabase(t *testing.T) {
	for _, half := range []role.Status{role.Reserved, role.SQLReady} {
		w := newOverlaidWorld(t)
		db := w.source()
		ready := w.role(db, "ready", role.Ready)
		w.role(db, "revoked", role.Revoked)
		made := w.role(db, "half", half)
		before, overlay := w.list(db), w.record(db).Overlay
		w.deleted(db)
		equal(t, "log-ins", w.logsIn(w.latest), false)
		w.wantFindings()
		w.recovered(db)
		w.asBefore(db, before, overlay)
		equal(t, "gets in", w.getsIn(ready), true)
		equal(t, "deleted", must(w.LegacyRoles.Delete(w.ctx, w.here(db), made.ID))(t).Done, true)
		w.deleted(db)
		w.purged(w.ControlPlane)
		equal(t, "databases of the server", len(w.server.Databases()), 0)
		w.wantFindings()
	}
}

// A clone has neither the roles nor the overlay, nor the activation. It may have its own.
func TestTheCloneOfAnOverlaidDatabase(t *testing.T) {
	for _, file := range []func(overlaidWorld) backup.Filename{
		func(overlaidWorld) backup.Filename { return "" }, func(w overlaidWorld) backup.Filename { return w.copied() },
	} {
		w := newOverlaidWorld(t)
		w.role(w.source(), "report", role.Ready)
		s := w.cloned(file(w))
		w.succeeds(s.Operation)
		db := s.Clone.Record.ID
		equal(t, "model", w.record(db).RoleModel, database.SingleLogin)
		equal(t, "overlay", w.record(db).Overlay, database.Overlay{OverlayStatus: database.NoOverlay})
		refused(t, errOf(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.LegacyRoles)), fault.FeatureNotAvailable)
		w.wantFindings()
		ok(t, w.Operator.ActivateLegacyRoles(w.ctx, db))
		equal(t, "roles", len(w.list(db)), 0)
		refused(t, errOf(w.LegacyRoles.Create(w.ctx, w.here(db), wanted("report"))), fault.LegacyRoleConflict)
		must(w.LegacyRoles.OptIn(w.ctx, w.here(db)))(t)
		w.role(db, "report", role.Ready)
		w.wantFindings()
	}
}

// The activity log tells of each step once, and of no secret; nobody is sent an event.
func TestLegacyRolesInTheLog(t *testing.T) {
	w := newOverlaidWorld(t)
	db, events := w.source(), len(w.events())
	must(w.LegacyRoles.OptIn(w.ctx, w.here(db)))(t)
	r := w.role(db, "report", role.Ready)
	passwords := []string{must(w.LegacyRoles.Reveal(w.ctx, w.here(db), r.ID))(t).Password}
	must(w.LegacyRoles.Change(w.ctx, w.here(db), r.ID, role.Rotation, "rotate"))(t)
	passwords = append(passwords, must(w.LegacyRoles.Reveal(w.ctx, w.here(db), r.ID))(t).Password)
	equal(t, "deleted", must(w.LegacyRoles.Delete(w.ctx, w.here(db), r.ID))(t).Done, true)
	equal(t, "events", len(w.events()), events)
	told := map[audit.Action]int{}
	for _, e := range w.log(db) {
		told[e.Action]++
		text := fmt.Sprintf("%+v", e)
		for _, secret := range append(passwords, "SCRAM-SHA-256") {
			if strings.Contains(text, secret) {
				t.Errorf("a secret in %s", text)
			}
		}
	}
	for action, times := range map[audit.Action]int{
		audit.LegacyActivated: 1, audit.OverlayActive: 1, audit.RoleCreated: 1, audit.RoleRevealed: 2, audit.RoleRotated: 1,
		audit.RoleRevoked: 1, audit.RoleRemoved: 1,
	} {
		equal(t, string(action), told[action], times)
	}
}
