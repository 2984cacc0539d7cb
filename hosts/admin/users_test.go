package admin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

const dashboard = "--dashboard-url=https://db.example.com"

// update runs fn on what a console works on.
func (c console) update(fn func(ctx context.Context, tx ports.Tx) error) {
	c.t.Helper()
	store := check.Must(postgres.Open(c.t.Context(), postgres.Config{URL: c.url}))(c.t)
	defer func() { check.NoError(c.t, store.Close()) }()
	check.NoError(c.t, store.Update(c.t.Context(), fn))
}

// works fails the test unless a link is that of a user, for as long as it must be.
func (c console) works(link, user string, life time.Duration) {
	c.t.Helper()
	secret, is := strings.CutPrefix(link, "https://db.example.com/reset/")
	hash, good := token.Parse(secret)
	if !is || !good {
		c.t.Fatalf("no link: %s", link)
	}
	c.update(func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Credentials().ResetByToken(ctx, hash)
		if left := time.Until(r.ExpiresAt); r.UserID != id.UserID(user) || left > life || left < life-time.Hour {
			c.t.Errorf("%+v", r)
		}
		return err
	})
}

// mailsTo is how many mails to an address wait.
func (c console) mailsTo(account, email string) (n int) {
	c.t.Helper()
	c.update(func(ctx context.Context, tx ports.Tx) error {
		recent, err := tx.Mails().Recent(ctx, id.AccountID(account), email, time.Now().Add(-mail.Window))
		n = recent.ToRecipient
		return err
	})
	return n
}

func TestAnOperatorInvitesPeople(t *testing.T) {
	c := newConsole(t)
	invite := []string{"user", "invite", "--email=Eve@example.com", "--name=Eve", "--plan=pro"}
	c.refuses("--dashboard-url (or PGHERD_DASHBOARD_URL) is required", invite...)
	c.refuses("dashboard-url: must begin with https://", append(invite, "--dashboard-url=http://db.example.com")...)
	if list := c.lists("account", "list"); len(list) != 0 {
		t.Errorf("refused, and made: %v", list)
	}
	invite = append(invite, dashboard)
	made := c.does(invite...)
	account, user := text(t, made, "accountId"), text(t, made, "userId")
	if made["made"] != true || made["plan"] != "pro" || made["email"] != "eve@example.com" || made["mailed"] != false {
		t.Errorf("%v", made)
	}
	c.works(text(t, made, "link"), user, person.WelcomeTime)
	again := c.does(append(invite, "--smtp-address=mail.example.com:25")...)
	if again["made"] != false || again["mailed"] != true || again["accountId"] != account || again["link"] == made["link"] {
		t.Errorf("%v", again)
	}
	c.works(text(t, again, "link"), user, person.WelcomeTime)
	if got := c.does(append(invite, "--mailbox-dir="+filepath.Join(t.TempDir(), "mails"), "--print")...); got["mailed"] != false {
		t.Errorf("%v", got)
	}
	if n := c.mailsTo(account, "eve@example.com"); n != 1 {
		t.Errorf("%d mails", n)
	}
	keyless := console{t: t, url: c.url}
	keyless.does(append(invite, "--print")...)
	c.refuses("plan", append(invite, "--plan=gold")...)
	c.refuses("email: ", "user", "invite", "--email=nobody", "--name=N", dashboard)
}

func TestAnOperatorHelpsPeopleIn(t *testing.T) {
	c := newConsole(t)
	made := c.does("user", "create", "--email=eve@example.com", "--name=Eve")
	user := text(t, made, "userId")
	c.update(func(ctx context.Context, tx ports.Tx) error {
		return tx.Credentials().SetPassword(ctx, id.UserID(user), "a hash")
	})
	on := "--email=EVE@example.com"
	c.works(text(t, c.does("user", "link", on, dashboard), "link"), user, person.ResetTime)
	c.refuses("dashboard-url", "user", "link", on)

	c.enters(user)
	list := c.lists("user", "sessions", on)
	if len(list) != 1 || list[0]["client"] != "192.0.2.1" || list[0]["agent"] != "a browser" || list[0]["status"] != "open" ||
		strings.Contains(fmt.Sprint(list), "oken") {
		t.Errorf("%v", list)
	}
	if got := c.does("user", "end-sessions", on); got["ended"] != 1.0 {
		t.Errorf("%v", got)
	}
	if out, err := c.run("user", "sessions", on); err != nil || out != "none\n" {
		t.Errorf("%v, %q", err, out)
	}
	c.refuses("without a terminal, this needs --yes", "user", "reset-factors", on)
	c.does("user", "reset-factors", on, "--yes")
	c.update(func(ctx context.Context, tx ports.Tx) error {
		return tx.Identities().Add(ctx, person.Identity{
			Issuer: "https://id.example.com", Subject: "eve", UserID: id.UserID(user), CreatedAt: time.Now().UTC(),
		})
	})
	c.refuses("without a terminal, this needs --yes", "user", "unlink-sign-on", on)
	c.does("user", "unlink-sign-on", on, "--yes")
	c.refuses("email: is not linked with a sign-on", "user", "unlink-sign-on", on, "--yes")
	for _, command := range []string{
		"link " + dashboard, "sessions", "end-sessions", "reset-factors --yes", "unlink-sign-on --yes",
	} {
		args := append([]string{"user"}, strings.Fields(command)...)
		c.refuses("email: is no user's", append(args, "--email=nobody@example.com")...)
		c.refuses(`"email" not set`, args...)
	}
	var log []string
	for _, e := range c.lists("audit", "list", "--account=eve@example.com") {
		log = append(log, fmt.Sprint(e["action"]))
	}
	const want = "person.sign_on_unlinked person.factors_reset session.all_ended person.link_made account.created"
	if got := strings.Join(log, " "); got != want {
		t.Errorf("the log has %s", got)
	}
}

// enters opens a session of a user.
func (c console) enters(user string) {
	c.t.Helper()
	at := person.Device{Client: "192.0.2.1", Agent: "a browser"}
	s := person.Begin("00000000-0000-4000-8000-00000000000e", id.UserID(user), token.Of("t"), person.ByPassword, false, at,
		time.Now().UTC())
	c.update(func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Add(ctx, s) })
}

func TestAnOperatorNamesOperators(t *testing.T) {
	c := newConsole(t)
	eve := text(t, c.does("user", "create", "--email=eve@example.com", "--name=Eve"), "userId")
	if got := c.does("operator", "add", "--email=EVE@example.com"); got["operator"] != true {
		t.Errorf("%v", got)
	}
	list := c.lists("operator", "list")
	if len(list) != 1 || list[0]["userId"] != eve || list[0]["email"] != "eve@example.com" || list[0]["passkeys"] != 0.0 {
		t.Errorf("%v", list)
	}
	c.does("operator", "add", "--email=eve@example.com")
	c.refuses("email: is no user's", "operator", "add", "--email=nobody@example.com")
	c.does("operator", "remove", "--email=eve@example.com")
	c.refuses("email: is no operator's", "operator", "remove", "--email=eve@example.com")
	var log []string
	for _, e := range c.lists("audit", "list", "--installation") {
		log = append(log, fmt.Sprint(e["action"]))
	}
	if got := strings.Join(log, " "); got != "operator.removed operator.added keyring.registered" {
		t.Errorf("the log has %s", got)
	}
}
