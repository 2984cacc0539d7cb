//go:build linux

package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

var previewDeeds = map[plan.Do]deed{
	"create a preview": {
		api: func(ctx context.Context, d *doing) (any, error) {
			made, err := d.ci().Previews.Create(ctx, wire.CreatePreview{Ref: d.name})
			if err == nil {
				_, _ = d.ci().Previews.Find(ctx, d.name)
				_, _ = d.ci().Previews.Get(ctx, made.Data.DatabaseID)
			}
			return made, err
		},
		svc: func(d *doing) []string { return []string{"previews", "create", d.name} },
		took: func(ctx context.Context, d *doing, a answer) {
			t := d.self()
			t.is(a.text("data", "databaseId"))
			t.name = a.text("connection", "database")
			d.told(t, "owner", a.text("connection", "username"), a.text("connection", "password"))
			if d.Way == plan.Svc {
				_, _ = d.runSvc(ctx, "previews", "get", t.known())
			}
		},
	},
	"extend a preview": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.ci().Previews.Extend(ctx, d.on.database(), wire.ExtendPreview{TTLHours: 24})
		},
		svc: func(d *doing) []string { return []string{"previews", "extend", d.on.known()} },
	},
	"choose daily backups of a preview": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.ci().Previews.SetBackupPolicy(ctx, d.on.database(), wire.SetBackupPolicy{ScheduledBackup: d.schedule()})
		},
		svc: func(d *doing) []string {
			return []string{"previews", "backup-policy", d.on.known(), string(d.schedule())}
		},
	},
	"delete a preview": {
		api: func(ctx context.Context, d *doing) (any, error) { return d.ci().Previews.Delete(ctx, d.on.database()) },
		svc: func(d *doing) []string { return []string{"previews", "delete", d.on.known(), "--yes"} },
	},
}

var peopleDeeds = map[plan.Do]deed{
	"add a member": {
		api: func(ctx context.Context, d *doing) (any, error) { return d.addMember(ctx, d.neighbour()) },
		svc: func(d *doing) []string { return []string{"members", "add", d.on.known(), d.neighbour(), "developer"} },
		wants: func(d *doing) []wish {
			return []wish{{fact: d.on.fact("member " + d.neighbour()), value: string(account.Developer)}}
		},
		took: func(_ context.Context, d *doing, a answer) { d.self().is(a.text("id")) },
	},
	"change a member": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Members.SetRole(ctx, d.in.database(), id.MembershipID(d.on.known()), wire.SetMemberRole{Role: account.Viewer})
		},
		svc: func(d *doing) []string { return []string{"members", "update", d.in.known(), d.on.known(), "viewer"} },
		wants: func(d *doing) []wish {
			return []wish{{fact: d.in.fact("member " + d.neighbour()), value: string(account.Viewer)}}
		},
	},
	"remove a member": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return nil, d.api().Members.Remove(ctx, d.in.database(), id.MembershipID(d.on.known()))
		},
		svc: func(d *doing) []string { return []string{"members", "remove", d.in.known(), d.on.known(), "--yes"} },
		operator: func(d *doing) [][]string {
			return [][]string{{"member", "remove", "--database", d.in.known(), "--email", d.neighbour()}}
		},
		wants: func(d *doing) []wish { return []wish{{fact: d.in.fact("member " + d.neighbour()), value: gone}} },
	},
	"invite": {
		api:  func(ctx context.Context, d *doing) (any, error) { return d.addMember(ctx, d.stranger(d.step)) },
		svc:  func(d *doing) []string { return []string{"members", "add", d.on.known(), d.stranger(d.step), "viewer"} },
		took: func(_ context.Context, d *doing, a answer) { d.self().is(a.text("id")) },
	},
	"invite again": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Members.ResendInvitation(ctx, d.in.database(), id.InvitationID(d.on.known()))
		},
		svc: func(d *doing) []string { return []string{"invitations", "resend", d.in.known(), d.on.known()} },
	},
	"accept an invitation": {
		api: func(ctx context.Context, d *doing) (any, error) {
			token, err := d.mailed(d.stranger(d.on.step))
			if err != nil {
				return nil, err
			}
			d.secrets.Add(token, "the token of an invitation")
			password := "correct horse " + d.name + " battery"
			d.secrets.Add(password, "a person's password")
			return d.api().Members.AcceptInvitation(ctx, wire.AcceptInvitation{Token: token, Name: &d.name, Password: &password})
		},
	},
	"withdraw an invitation": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return nil, d.api().Members.DeleteInvitation(ctx, d.in.database(), id.InvitationID(d.on.known()))
		},
		svc: func(d *doing) []string { return []string{"invitations", "remove", d.in.known(), d.on.known()} },
	},
	"add a webhook": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Webhooks.Create(ctx, wire.CreateWebhook{URL: d.receiver.URL + "/ok/" + d.name})
		},
		svc: func(d *doing) []string { return []string{"webhooks", "create", d.receiver.URL + "/ok/" + d.name} },
		took: func(_ context.Context, d *doing, a answer) {
			d.self().is(a.text("id"))
			d.secrets.Add(a.text("secret"), "a webhook's secret")
		},
	},
	"try a webhook": {
		api: func(ctx context.Context, d *doing) (any, error) {
			sent, err := d.api().Webhooks.Test(ctx, d.hook())
			if err == nil {
				_, _ = d.api().Webhooks.ListDeliveryAttempts(d.hook()).Page(ctx, apiclient.Page{})
				_, _ = d.api().Webhooks.RedeliverEvent(ctx, d.hook(), sent.DeliveryID) // refused where it is on its way
			}
			return sent, err
		},
		svc: func(d *doing) []string { return []string{"webhooks", "test", d.on.known()} },
		took: func(ctx context.Context, d *doing, a answer) {
			if d.Way == plan.Svc {
				_, _ = d.runSvc(ctx, "webhooks", "deliveries", d.on.known())
				_, _ = d.runSvc(ctx, "webhooks", "redeliver", d.on.known(), a.text("deliveryId"))
			}
		},
	},
	"rotate a webhook": {
		api:  func(ctx context.Context, d *doing) (any, error) { return d.api().Webhooks.RotateSecret(ctx, d.hook()) },
		svc:  func(d *doing) []string { return []string{"webhooks", "rotate", d.on.known(), "--yes"} },
		took: func(_ context.Context, d *doing, a answer) { d.secrets.Add(a.text("secret"), "a webhook's secret") },
	},
	"disable a webhook": {
		api: func(ctx context.Context, d *doing) (any, error) { return nil, d.api().Webhooks.Disable(ctx, d.hook()) },
		svc: func(d *doing) []string { return []string{"webhooks", "disable", d.on.known(), "--yes"} },
	},
	"make a key": {
		operator: func(d *doing) [][]string {
			return [][]string{{"key", "create", "--account", d.by.ID, "--label", d.name, "--scope", "full"}}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			d.self().is(a.text("keyId"))
			d.secrets.Add(a.text("apiKey"), "a key")
			_, _ = d.admin(ctx, "key", "set", "--key", a.text("keyId"), "--expires", "90d")
		},
	},
	"replace a key": {
		operator: func(d *doing) [][]string { return [][]string{{"key", "replace", "--key", d.on.known()}} },
		took:     func(_ context.Context, d *doing, a answer) { d.secrets.Add(a.text("apiKey"), "a key") },
	},
	"revoke a key": {
		operator: func(d *doing) [][]string { return [][]string{{"key", "revoke", "--key", d.on.known()}} },
	},
	"make and revoke a CI key": {
		operator: func(d *doing) [][]string {
			return [][]string{{"ci-namespace", "create", "--account", d.by.ID, "--name", d.name}}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			made, err := d.admin(ctx, "ci-key", "create", "--namespace", a.text("namespaceId"))
			if err == nil {
				d.secrets.Add(made.text("apiKey"), "a CI key")
				_, _ = d.admin(ctx, "ci-key", "revoke", "--key", made.text("keyId"))
			}
			_, _ = d.admin(ctx, "ci-key", "list", "--namespace", a.text("namespaceId"))
			_, _ = d.admin(ctx, "ci-trust", "list", "--namespace", a.text("namespaceId"))
			_, _ = d.admin(ctx, "ci-namespace", "revoke", "--namespace", a.text("namespaceId"))
		},
	},
	"make a user": {
		operator: func(d *doing) [][]string {
			return [][]string{
				{"user", "create", "--email", d.stranger(d.step), "--name", d.name},
				{
					"user", "invite", "--email", "invited-" + d.stranger(d.step), "--name", d.name, "--print", "--dashboard-url",
					d.dashboards[0].URL,
				},
				{"operator", "add", "--email", d.stranger(d.step)}, {"operator", "remove", "--email", d.stranger(d.step)},
			}
		},
	},
	"log in anew": {
		operator: func(d *doing) [][]string {
			return [][]string{
				{"user", "end-sessions", "--email", d.by.Email}, {"user", "reset-factors", "--email", d.by.Email, "--yes"},
				{"user", "link", "--email", d.by.Email, "--dashboard-url", d.dashboards[d.Host].URL},
			}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			link := a.text("link")
			d.secrets.Add(link[strings.LastIndexAny(link, "/=")+1:], "the token of a link")
			d.by.logIn(ctx, d.run)
		},
	},
}

// logIn has the account's owner log in at both dashboards. Whoever is away is tried again when it is used.
func (a *customer) logIn(ctx context.Context, r *run) {
	a.browsing.Lock()
	defer a.browsing.Unlock()
	for n, h := range r.dashboards {
		browser, err := r.first.Browser()
		if err == nil && r.first.LogIn(ctx, h, browser, a.Account) == nil {
			a.browsers[n] = browser
		}
	}
}

// neighbour is the owner of another account.
func (d *doing) neighbour() string { return d.accounts[(d.by.number+1)%len(d.accounts)].Email }

// stranger is somebody without an account.
func (d *doing) stranger(step int) string { return fmt.Sprintf("stranger-%d@example.net", step) }

func (d *doing) addMember(ctx context.Context, email string) (any, error) {
	return d.api().Members.Add(ctx, d.on.database(), wire.AddMember{Email: email, Role: account.Developer})
}

func (d *doing) hook() id.WebhookID { return id.WebhookID(d.on.known()) }

var invitationToken = regexp.MustCompile(`invitations[/?#a-z=]*([0-9A-Za-z]{30,})`)

// mailed is the token of the newest invitation that was mailed to somebody.
func (r *run) mailed(to string) (string, error) {
	files, err := filepath.Glob(filepath.Join(r.first.MailboxDir(), "*"))
	token := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), to) {
			continue
		}
		joined := strings.ReplaceAll(strings.ReplaceAll(string(text), "=\r\n", ""), "=3D", "=") // as mails are written
		if found := invitationToken.FindStringSubmatch(joined); found != nil {
			token = found[1]
		}
	}
	if err == nil && token == "" {
		err = errUnknown
	}
	return token, err
}
