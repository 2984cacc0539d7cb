package controlplane_test

import (
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// ofReading are those that write though they only tell something, and those that have something done once more.
var ofReading = []wish{
	{
		name: "backup, read", prepare: func(w *world) { w.backUp(w.reached(w.source())) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			opened, err := cp.Backups.Open(w.ctx, w.reached(w.source()), w.copied(), backup.Beginning{})
			if err == nil {
				ok(w.t, opened.File.Body.Close())
			}
			return err
		},
		sees: sawLogged(audit.BackupDownloaded),
	},
	{
		name: "deletion backup, read", alone: true,
		prepare: func(w *world) {
			w.deletable()
			w.deleted(w.source())
		},
		act: func(w *world, cp *controlplane.ControlPlane) error { return w.downloadsBy(cp, w.latest.Record.ID) },
		sees: func(w *world) string {
			return fmt.Sprint(w.logged(w.latest.Record.ID, audit.BackupDownloaded) > 0, w.haveDeleted())
		},
	},
	{
		name: "certificate of a backup",
		prepare: func(w *world) {
			must(w.Operator.CreateCertificateKey(w.ctx))(w.t)
			w.backUp(w.reached(w.source()))
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			c, err := cp.Certificates.Issue(w.ctx, w.reached(w.source()), w.copied())
			if err == nil {
				c.Done()
				equal(w.t, "signed by a published key", w.signed(c.Certificate), true)
			}
			return err
		},
		sees: func(w *world) string { return fmt.Sprint(len(w.published()), w.haveOperations()) },
	},
	{
		name: "size of a database", prepare: func(w *world) { w.clock.Advance(25 * time.Hour) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Databases.Get(w.ctx, w.reached(w.source())))
		},
		sees: func(w *world) string { return fmt.Sprint(w.only().SizedAt != nil, w.only().Status) },
	},
	{
		name: "extension that is asked after", alone: true,
		prepare: func(w *world) {
			w.readyForExtensions()
			must(w.Extensions.Start(w.ctx, w.forExtensions(), install("citext", "once")))(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Extensions.Status(w.ctx, w.forExtensions(), w.newest().ID))
		},
		sees: func(w *world) string {
			return fmt.Sprint(w.entry(extension.Name("citext")).InstalledVersion != "", w.haveOperations())
		},
	},
	{
		name: "metadata that count", alone: true,
		prepare: func(w *world) {
			restore := w.store.Backup()
			w.made("shop")
			restore()
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder)
		},
		sees: func(w *world) string { return fmt.Sprint(errOf(w.Operator.Adopt(w.ctx, w.adopting("shop")))) },
	},
	{
		name: "password of a login, revealed",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.ManagedLogins.Reveal(w.ctx, w.reached(w.source()), database.RuntimeLogin))
		},
		sees: sawLogged(audit.LoginRevealed),
	},
	{
		name: "change of a role that goes on",
		prepare: func(w *world) {
			made := must(w.Roles.Create(w.ctx, w.forRoles(w.source()), wanted("report")))(w.t)
			w.losing("ChangeLogin", 0)
			_ = errOf(w.Roles.Change(w.ctx, w.forRoles(w.source()), made.ID, role.Rotation, "once"))
			w.server.OnCall(nil)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.forRoles(w.source())
			of := must(w.Roles.List(w.ctx, r, false))(w.t)[0]
			if of.ChangeID == "" { // it is done
				return nil
			}
			return errOf(cp.Roles.ReplayChange(w.ctx, r, of.ID, of.ChangeID))
		},
		sees: (*world).haveRoles,
	},
	{
		name: "round that tells a server what it has not heard",
		prepare: func(w *world) {
			w.server.SetUnreachable(true)
			_ = errOf(w.Allowlist.Add(w.ctx, w.reached(w.source()), "192.0.2.0/24", ""))
			w.server.SetUnreachable(false)
			w.clock.Advance(time.Minute)
		},
		act:  func(w *world, cp *controlplane.ControlPlane) error { return cp.Rounds.Once(w.ctx) },
		sees: (*world).admitted,
	},
	{
		name: "event, delivered again",
		prepare: func(w *world) {
			w.hook(receiver)
			w.fires(w.reached(w.source()))
			w.dispatch(w.ControlPlane)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			hook := must(w.Webhooks.Reach(w.ctx, w.caller, w.hooks()[0].ID))(w.t)
			list, _, err := w.Webhooks.Attempts(w.ctx, hook, ports.Page{})
			ok(w.t, err)
			if list[0].Status == webhook.Pending { // it is on its way
				return nil
			}
			return errOf(cp.Webhooks.Redeliver(w.ctx, hook, list[0].DeliveryID))
		},
		sees: func(w *world) string {
			w.dispatch(w.ControlPlane)
			return fmt.Sprint(len(w.inbox.Requests(receiver)) > 1, w.hooks()[0].ConsecutiveFailures)
		},
	},
	{
		name: "visit", prepare: func(w *world) {
			w.hasSessions()
			w.clock.Advance(time.Hour)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Access.AdmitPerson(w.ctx, access.Visit{
				Token: w.holds[0], Class: ratelimit.Read, Client: home().Address, RequestID: "request",
			}))
		},
		sees: (*world).haveSessions,
	},
}

// sawLogged sees whether the database's log has something: as often as was answered, or once more.
func sawLogged(what audit.Action) func(*world) string {
	return func(w *world) string { return fmt.Sprint(w.logged(w.source(), what) > 0) }
}
