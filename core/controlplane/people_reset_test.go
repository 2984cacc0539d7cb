package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
)

// resetting is a crowd whose installation has a page to choose another password on.
func resetting(t *testing.T) *crowd {
	t.Helper()
	c := newCrowd(t)
	c.ControlPlane = c.process(withResets(t))
	return c
}

func withResets(t *testing.T) controlplane.Config {
	t.Helper()
	config := quick()
	config.Pages.Reset = must(mail.ParseLink("https://app.example.org/reset"))(t)
	config.ResetPace = time.Millisecond
	return config
}

// links are the tokens in the mails about another password, the oldest first.
func (c *crowd) links(email string) (list []string) {
	c.t.Helper()
	c.mails(c.ControlPlane)
	for _, m := range c.mailbox.Mails(email) {
		if strings.Contains(m.Text, "/reset#token=") {
			list = append(list, base62.FindString(m.Text))
		}
	}
	return list
}

func TestAForgottenPassword(t *testing.T) {
	c := resetting(t)
	ok(t, c.People.AskReset(c.ctx, "owner@example.org", home()))
	c.clock.Advance(time.Second)
	ok(t, c.People.AskReset(c.ctx, " OWNER@example.org", home()))
	links := c.links("owner@example.org")
	equal(t, "links", len(links), 2)
	const fresh = "a new password"
	gone := func(what, link string) {
		t.Helper()
		if err := errOf(c.People.Reset(c.ctx, link, fresh, home())); err == nil || err.Error() != person.ErrNoReset().Error() {
			t.Errorf("%s: %v", what, err)
		}
	}
	gone("no link", "")
	gone("nobody's link", strings.Repeat("0", 40))
	gone("the link of before", links[0])
	refused(t, errOf(c.People.Reset(c.ctx, links[1], "short", home())), fault.ValidationError)
	ok(t, errOf(c.People.Reset(c.ctx, links[1], fresh, home())))
	gone("the link again", links[1])
	refused(t, errOf(c.tries("owner@example.org", password)), fault.Unauthorized)
	must(c.tries("owner@example.org", fresh))(t)

	ok(t, c.People.AskReset(c.ctx, "owner@example.org", home()))
	last := c.links("owner@example.org")[2]
	c.clock.Advance(person.ResetTime)
	gone("a link that is too old", last)
}

// A reset is no way around a second factor.
func TestAResetLeavesTheFactor(t *testing.T) {
	c, app, _ := secured(t)
	c.ControlPlane = c.process(withResets(t))
	ok(t, c.People.AskReset(c.ctx, "owner@example.org", home()))
	ok(t, errOf(c.People.Reset(c.ctx, c.links("owner@example.org")[0], "a new password", home())))
	in := must(c.tries("owner@example.org", "a new password"))(t)
	equal(t, "the status", in.Session.Status, person.AwaitsFactor)
	must(c.People.GiveFactor(c.ctx, in.Token, code(c, app), home()))(t)
}

// ending is a person with two sessions and a link to choose a password.
type ending struct {
	*crowd
	own, other people.Entered
	caller     access.Caller // of the own session
	link       string
}

func newEnding(t *testing.T) *ending {
	t.Helper()
	e := &ending{crowd: withPasskeys(t)}
	e.ControlPlane = e.process(withResets(t))
	e.own, e.other = e.entered(), e.entered()
	e.caller = must(e.visits(e.own.Token))(t)
	ok(t, e.People.AskReset(e.ctx, "owner@example.org", home()))
	e.link = e.links("owner@example.org")[0]
	return e
}

// ended says what has ended.
func (e *ending) ended() (list []string) {
	e.t.Helper()
	for _, session := range []struct{ name, token string }{{"own", e.own.Token}, {"other", e.other.Token}} {
		if _, err := e.visits(session.token); fault.Has(err, fault.Unauthorized) {
			list = append(list, session.name)
		}
	}
	if err := errOf(e.People.Reset(e.ctx, e.link, "yet another one", home())); fault.Has(err, fault.Unauthorized) {
		list = append(list, "link")
	}
	return list
}

// What a person or the operator does, and which of the sessions and of the links to choose a password that ends.
func TestWhatEndsWhat(t *testing.T) {
	everything := []string{"own", "other", "link"}
	for what, c := range map[string]struct {
		do   func(*ending) error
		ends []string
	}{
		"a log-out":    {func(e *ending) error { return e.People.LogOut(e.ctx, e.own.Token) }, []string{"own"}},
		"all others":   {func(e *ending) error { return e.People.EndOthers(e.ctx, e.caller) }, []string{"other"}},
		"a reset":      {func(e *ending) error { return errOf(e.People.Reset(e.ctx, e.link, "another one", home())) }, everything},
		"another link": {func(e *ending) error { return e.People.AskReset(e.ctx, "owner@example.org", home()) }, []string{"link"}},
		"a password": {func(e *ending) error {
			return errOf(e.People.ChangePassword(e.ctx, e.caller, "another one", ""))
		}, []string{"other", "link"}},
		"a proof": {func(e *ending) (err error) {
			e.own, err = e.People.ProveAgain(e.ctx, e.caller, people.Proof{Password: password})
			return err
		}, nil},
		"an app": {func(e *ending) error {
			app := must(e.People.BeginFactor(e.ctx, e.caller))(t)
			return errOf(e.People.ConfirmFactor(e.ctx, e.caller, code(e.crowd, app)))
		}, []string{"other"}},
		"a passkey": {func(e *ending) error { return errOf(e.registers(e.caller, fakepasskeys.NewDevice("phone"))) }, nil},
		"a passkey less": {func(e *ending) error {
			return e.People.RemovePasskey(e.ctx, e.caller, must(e.registers(e.caller, fakepasskeys.NewDevice("phone")))(t).ID)
		}, nil},
		"the operator's link": {func(e *ending) error {
			return errOf(e.Operator.LinkUser(e.ctx, "owner@example.org"))
		}, []string{"link"}},
		"the operator's reset of factors": {func(e *ending) error {
			return e.Operator.ResetFactors(e.ctx, "owner@example.org")
		}, everything},
	} {
		e := newEnding(t)
		ok(t, c.do(e))
		if got := e.ended(); !slices.Equal(got, c.ends) {
			t.Errorf("%s ends %v, want %v", what, got, c.ends)
		}
	}
}

// Whoever asks learns nothing about who is here, and fills nobody's mailbox.
func TestAskingForAResetTellsNothing(t *testing.T) {
	c := resetting(t)
	ok(t, c.People.AskReset(c.ctx, "nobody@example.org", home()))
	for range mail.MaxRecipient + 3 {
		ok(t, c.People.AskReset(c.ctx, "owner@example.org", home()))
	}
	equal(t, "mails", len(c.links("owner@example.org")), mail.MaxRecipient)
	equal(t, "mails to nobody", len(c.mailbox.Mails("nobody@example.org")), 0)
	refused(t, c.People.AskReset(c.ctx, "no address", home()), fault.ValidationError)
	for n := range 20 {
		_ = c.People.AskReset(c.ctx, fmt.Sprintf("nobody%d@example.org", n), home())
	}
	refused(t, c.People.AskReset(c.ctx, "owner@example.org", home()), fault.RateLimited)
	refused(t, newCrowd(t).People.AskReset(c.ctx, "owner@example.org", home()), fault.FeatureNotAvailable)
}

// A person is told of what changes in how they log in; that fills no quota of invitations, and needs no page.
func TestChangesAreTold(t *testing.T) {
	c := newCrowd(t)
	owner := c.person()
	app := must(c.People.BeginFactor(c.ctx, owner))(t)
	for _, change := range []func() error{
		func() error { return errOf(c.People.ConfirmFactor(c.ctx, owner, code(c, app))) },
		func() error { return errOf(c.People.RenewRecovery(c.ctx, owner)) },
		func() error { return c.People.RemoveFactor(c.ctx, owner) },
		func() error { return errOf(c.People.ChangePassword(c.ctx, owner, "another one", "")) },
	} {
		ok(t, change())
		c.mails(c.ControlPlane)
	}
	var told []string
	for _, m := range c.mailbox.Mails("owner@example.org") {
		first, _, _ := strings.Cut(m.Text, "\n")
		told = append(told, first)
	}
	for n, want := range []string{"app was set up", "recovery codes", "app was removed", "password was changed"} {
		if len(told) != 4 || !strings.Contains(told[n], want) {
			t.Fatalf("%q", told)
		}
	}
	added := must(c.Members.Add(c.ctx, c.reached(c.made("shop").Record.ID), "bob@example.org", account.Viewer))(t)
	if added.Invitation == nil {
		t.Error("nobody was invited")
	}
}
