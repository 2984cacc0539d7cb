package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// wish is something that is done within one request, or one turn of a dispatcher.
type wish struct {
	name    string
	alone   bool           // there is nothing before it is prepared
	prepare func(w *world) // otherwise beside the database "shop"
	act     func(w *world, cp *controlplane.ControlPlane) error
	sees    func(w *world) string // what came of it
}

// theRequests are what no flow of operations does.
var theRequests = slices.Concat(
	ofDatabases, ofPeople, ofOperators, ofSessions, ofFactors, ofLinks, ofKeys, ofRoles, ofOneDatabase, ofReading, ofServers,
	ofTheInstallation,
)

// Whoever gets an error asks again, and that may be refused because it is done already. Once a minute has gone by, all is as it
// is where nothing went wrong.
func TestEveryRequestSurvivesEveryBlow(t *testing.T) {
	for _, a := range theRequests {
		t.Run(a.name, func(t *testing.T) {
			w := a.ready(t)
			cp, undisturbed := w.struckBy(point{})
			ok(t, a.act(w, cp))
			w.minuteGoesBy()
			want := a.sees(w)
			for _, at := range sample.OneIn(t, 8, undisturbed.points) {
				t.Run(at.String(), func(t *testing.T) {
					w := a.ready(t)
					cp, s := w.struckBy(at)
					if a.act(w, cp) != nil {
						_ = a.act(w, cp)
					}
					equal(t, "it came to that", s.hit, true)
					w.minuteGoesBy()
					s.ends()
					equal(t, "it comes to", a.sees(w), want)
				})
			}
		})
	}
}

func (a wish) ready(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if !a.alone {
		w.made("shop")
	}
	if a.prepare != nil {
		a.prepare(w)
	}
	return w
}

// minuteGoesBy has everything done that the service does by itself.
func (w *world) minuteGoesBy() {
	w.t.Helper()
	w.clock.Advance(time.Minute)
	w.rounds(w.ControlPlane)
	w.work(w.ControlPlane)
}

var ofDatabases = []wish{
	{
		name: "environment",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Databases.SetEnvironment(w.ctx, w.reached(w.source()), new(database.Production))
		},
		sees: func(w *world) string { return string(w.only().Environment) },
	},
	{
		name: "schedule of backups",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Backups.SetSchedule(w.ctx, w.reached(w.source()), database.Daily)
		},
		sees: func(w *world) string { return fmt.Sprint(w.only().Schedule) },
	},
	{
		name: "deletion of a backup",
		prepare: func(w *world) {
			w.backUp(w.reached(w.source()))
			w.clock.Advance(time.Hour)
			w.backUp(w.reached(w.source()))
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			if len(w.backups(w.reached(w.source()))) < 2 { // it is done
				return nil
			}
			return cp.Backups.Delete(w.ctx, w.reached(w.source()), w.copied())
		},
		sees: func(w *world) string { return fmt.Sprint(len(w.backups(w.reached(w.source()))), w.server.Files()) },
	},
	{
		name: "entry of the allowlist",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Allowlist.Add(w.ctx, w.reached(w.source()), "192.0.2.0/24", "the office"))
		},
		sees: (*world).admitted,
	},
	{
		name: "end of an entry of the allowlist",
		prepare: func(w *world) {
			must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "192.0.2.0/24", ""))(w.t)
			must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "198.51.100.0/24", ""))(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, e := range must(w.Allowlist.List(w.ctx, w.reached(w.source())))(w.t) {
				if strings.HasPrefix(e.CIDR, "192") {
					return cp.Allowlist.Remove(w.ctx, w.reached(w.source()), e.ID)
				}
			}
			return nil
		},
		sees: (*world).admitted,
	},
	{
		name: "role",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Roles.Create(w.ctx, w.forRoles(w.source()), wanted("report")))
		},
		sees: (*world).haveRoles,
	},
	{
		name:    "name of a role",
		prepare: func(w *world) { must(w.Roles.Create(w.ctx, w.forRoles(w.source()), wanted("report")))(w.t) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.forRoles(w.source())
			return errOf(cp.Roles.Rename(w.ctx, r, must(w.Roles.List(w.ctx, r, false))(w.t)[0].ID, "reports"))
		},
		sees: (*world).haveRoles,
	},
	{
		name:    "password of a role, revealed",
		prepare: func(w *world) { must(w.Roles.Create(w.ctx, w.forRoles(w.source()), wanted("report")))(w.t) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.forRoles(w.source())
			return errOf(cp.Roles.Reveal(w.ctx, r, must(w.Roles.List(w.ctx, r, false))(w.t)[0].ID))
		},
		sees: (*world).haveRoles,
	},
	{
		name: "password of a login, changed",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			key := idempotency.Key("once")
			return errOf(cp.ManagedLogins.Rotate(w.ctx, w.reached(w.source()), database.RuntimeLogin, key))
		},
		sees: func(w *world) string {
			shown := must(w.ManagedLogins.Reveal(w.ctx, w.reached(w.source()), database.RuntimeLogin))(w.t)
			return fmt.Sprint(w.server.CanLogIn(customer, "shop", shown.Username, shown.Password), w.databases())
		},
	},
	{
		name:    "preview's lease",
		prepare: func(w *world) { must(w.Previews.Open(w.ctx, w.pipeline(w.account, "web"), ofRef("main")))(w.t) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			ci := w.pipelines()
			of := must(w.find(ci, "main"))(w.t)
			return errOf(cp.Previews.Extend(w.ctx, must(w.Previews.Reach(w.ctx, ci, of.DatabaseID))(w.t), 48))
		},
		sees: func(w *world) string {
			return must(w.find(w.pipelines(), "main"))(w.t).ExpiresAt.Sub(w.clock.Now()).Round(time.Hour).String()
		},
	},
}

// admitted are the networks that a server admits, and the record has.
func (w *world) admitted() string {
	w.t.Helper()
	var listed []string
	for _, e := range must(w.Allowlist.List(w.ctx, w.reached(w.source())))(w.t) {
		listed = append(listed, e.CIDR)
	}
	return fmt.Sprint(listed, w.server.Networks("shop"))
}

// haveRoles are the roles that are recorded, and the logins of the server.
func (w *world) haveRoles() string {
	w.t.Helper()
	var list []string
	for _, r := range must(w.Roles.List(w.ctx, w.forRoles(w.source()), true))(w.t) {
		list = append(list, fmt.Sprint(r.DisplayName, " ", r.Status, " ", r.CredentialGeneration))
	}
	return fmt.Sprint(list, len(w.server.Logins()))
}

// pipelines is the only namespace as a key of it that is new.
func (w *world) pipelines() (c access.Caller) {
	w.t.Helper()
	all := must(w.Operator.Namespaces(w.ctx, w.account.ID))(w.t)
	_, key, err := w.Operator.CreateCIKey(w.ctx, all[0].ID)
	ok(w.t, err)
	return w.admit(key)
}

const invitee = "bob@example.org"

var ofPeople = []wish{
	{
		name: "invitation",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Members.Add(w.ctx, w.reached(w.source()), invitee, account.Viewer))
		},
		sees: (*world).haveMembers,
	},
	{
		name:    "member",
		prepare: func(w *world) { w.newAccount(invitee, account.Free) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Members.Add(w.ctx, w.reached(w.source()), invitee, account.Viewer))
		},
		sees: (*world).haveMembers,
	},
	{
		name:    "role of a member",
		prepare: (*world).bob,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			bob := must(w.Members.List(w.ctx, w.reached(w.source())))(w.t).Members[0]
			return errOf(cp.Members.SetRole(w.ctx, w.reached(w.source()), bob.ID, account.Developer))
		},
		sees: (*world).haveMembers,
	},
	{
		name:    "end of a member",
		prepare: (*world).bob,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, bob := range must(w.Members.List(w.ctx, w.reached(w.source())))(w.t).Members {
				return cp.Members.Remove(w.ctx, w.reached(w.source()), bob.ID)
			}
			return nil
		},
		sees: (*world).haveMembers,
	},
	{
		name: "mail of an invitation",
		prepare: func(w *world) {
			must(w.Members.Add(w.ctx, w.reached(w.source()), invitee, account.Viewer))(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Mails.RunNext(w.ctx))
		},
		sees: func(w *world) string {
			w.mails(w.ControlPlane)
			return fmt.Sprint(len(w.mailbox.Mails(invitee)) > 0, w.haveMembers())
		},
	},
	{
		name: "webhook",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Webhooks.Create(w.ctx, w.caller, receiver, nil))
		},
		sees: func(w *world) string { return fmt.Sprint(len(w.hooks()) > 0) },
	},
	{
		name:    "end of a webhook",
		prepare: func(w *world) { w.hook(receiver) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Webhooks.Disable(w.ctx, must(w.Webhooks.Reach(w.ctx, w.caller, w.hooks()[0].ID))(w.t))
		},
		sees: func(w *world) string { return fmt.Sprint(w.hooks()[0].Status()) },
	},
	{
		name: "delivery of an event",
		prepare: func(w *world) {
			w.hook(receiver)
			w.fires(w.reached(w.source()))
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			if err := errOf(cp.Dispatcher.FanOut(w.ctx)); err != nil {
				return err
			}
			return errOf(cp.Dispatcher.RunNext(w.ctx))
		},
		sees: func(w *world) string {
			w.dispatch(w.ControlPlane)
			return fmt.Sprint(len(w.inbox.Requests(receiver)) > 0, w.hooks()[0].ConsecutiveFailures)
		},
	},
}

func (w *world) bob() {
	w.t.Helper()
	w.newAccount(invitee, account.Free)
	must(w.Members.Add(w.ctx, w.reached(w.source()), invitee, account.Viewer))(w.t)
}

// haveMembers are the people of the database, and how many mails are to be sent or were.
func (w *world) haveMembers() string {
	w.t.Helper()
	all := must(w.Members.List(w.ctx, w.reached(w.source())))(w.t)
	var list []string
	for _, m := range all.Members {
		list = append(list, fmt.Sprint(m.Email, " ", m.Role))
	}
	for _, i := range all.Invitations {
		list = append(list, fmt.Sprint(i.Email, " ", i.Role, "?"))
	}
	return strings.Join(list, ", ")
}

func (w *world) hooks() (list []webhook.Endpoint) {
	w.t.Helper()
	all, _, err := w.Webhooks.List(w.ctx, w.caller, ports.Page{})
	ok(w.t, err)
	for _, by := range all {
		list = append(list, by.What)
	}
	return list
}

var ofOperators = []wish{
	{
		name: "key, replaced",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, key := range must(w.Operator.Keys(w.ctx, w.account.ID))(w.t) {
				if key.What.RevokedAt == nil {
					_, _, err := cp.Operator.ReplaceKey(w.ctx, key.What.ID, keys.Bounds{})
					return err
				}
			}
			return nil
		},
		sees: func(w *world) string {
			_, err := w.Access.Admit(w.ctx, attempt(w.key))
			return fmt.Sprint(err)
		},
	},
	{
		name: "enrolment",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.Enroll(w.ctx, w.source(), rollout.All)
		},
		sees: (*world).haveSwitches,
	},
	{
		name:    "end of an enrolment",
		prepare: func(w *world) { ok(w.t, w.Operator.Enroll(w.ctx, w.source(), rollout.All)) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.Unenroll(w.ctx, w.source(), rollout.All)
		},
		sees: (*world).haveSwitches,
	},
	{
		name: "feature",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.SetFeature(w.ctx, "restore", true)
		},
		sees: (*world).haveSwitches,
	},
	{
		name: "maintenance",
		act:  func(w *world, cp *controlplane.ControlPlane) error { return cp.Operator.SetMaintenance(w.ctx, true) },
		sees: (*world).haveSwitches,
	},
	{
		name: "suspension",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.Suspend(w.ctx, w.account.ID, "unpaid"))
		},
		sees: func(w *world) string { return fmt.Sprint(w.logsIn(w.latest)) },
	},
	{
		name:    "end of a suspension",
		prepare: func(w *world) { must(w.Operator.Suspend(w.ctx, w.account.ID, "unpaid"))(w.t) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.Resume(w.ctx, w.account.ID, "paid"))
		},
		sees: func(w *world) string { return fmt.Sprint(w.logsIn(w.latest)) },
	},
	{
		name: "plan",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.Plan = account.Business }))
		},
		sees: func(w *world) string {
			return fmt.Sprint(must(w.Operator.Account(w.ctx, w.account.ID))(w.t).Plan)
		},
	},
	{
		name: "first key of certificates",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.CreateCertificateKey(w.ctx))
		},
		sees: func(w *world) string { return fmt.Sprint(len(must(w.Operator.CertificateKeys(w.ctx))(w.t))) },
	},
	{
		name: "round",
		prepare: func(w *world) {
			must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "192.0.2.0/24", ""))(w.t)
			ok(w.t, w.Backups.SetSchedule(w.ctx, w.reached(w.source()), database.Daily))
			w.clock.Advance(25 * time.Hour)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error { return cp.Rounds.Once(w.ctx) },
		sees: func(w *world) string {
			return fmt.Sprint(len(w.backups(w.reached(w.source()))), " ", w.admitted())
		},
	},
	{
		name: "signs of life",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			cp.Monitor.Once(w.ctx)
			return nil
		},
		sees: func(w *world) string {
			w.Monitor.Once(w.ctx)
			return fmt.Sprint(w.listedServer().AwaySince == nil)
		},
	},
}

// haveSwitches are the switches of the installation.
func (w *world) haveSwitches() string {
	w.t.Helper()
	on, _, err := w.Operator.Maintenance(w.ctx)
	ok(w.t, err)
	var list []string
	for _, f := range must(w.Operator.FeatureList(w.ctx))(w.t) {
		list = append(list, fmt.Sprint(f.Name, " ", f.Enabled, " ", f.Enrolled))
	}
	return fmt.Sprint(list, on)
}
