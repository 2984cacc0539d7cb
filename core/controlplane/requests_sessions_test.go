package controlplane_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/fakes/fakesignon"
)

const (
	ownerEmail = "owner@example.org"
	fresh      = "another password"
)

// ofSessions are log-ins, and what becomes of a session.
var ofSessions = []wish{
	{
		name: "log-in by password", prepare: (*world).hasPassword,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.LogIn(w.ctx, people.Credentials{Email: ownerEmail, Password: password}, home()))
		},
		sees: (*world).isLoggedIn,
	},
	{
		name: "log-in by passkey", prepare: (*world).hasPasskey,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			asked, err := cp.People.BeginPasskeyLogIn(w.ctx, home())
			if err != nil {
				return err
			}
			return errOf(cp.People.LogInByPasskey(w.ctx, asked.Token, w.phone.Signs(asked.Options), home()))
		},
		sees: (*world).isLoggedIn,
	},
	{
		name: "log-in by the issuer", prepare: (*world).hasIssuer,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			on, err := cp.People.BeginSignOn(w.ctx, home())
			if err != nil {
				return err
			}
			return errOf(cp.People.LogInBySignOn(w.ctx, w.signing().back(on, ada()), home()))
		},
		sees: func(w *world) string {
			return fmt.Sprint(w.isLoggedIn(), must(w.signing().signsOn(ada()))(w.t).Session.Status)
		},
	},
	{
		name: "log-in by a link", prepare: (*world).hasLink,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.LogInByLink(w.ctx, w.holds[0], home()))
		},
		sees: (*world).isLoggedIn,
	},
	{
		name: "log-out", prepare: (*world).hasSessions,
		act:  func(w *world, cp *controlplane.ControlPlane) error { return cp.People.LogOut(w.ctx, w.holds[0]) },
		sees: (*world).haveSessions,
	},
	{
		name: "end of another session", prepare: (*world).hasSessions,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			me := must(w.crowd().visits(w.holds[0]))(w.t)
			for _, s := range must(w.People.Sessions(w.ctx, me))(w.t) {
				if s.ID != me.Session.ID {
					return cp.People.EndSession(w.ctx, me, s.ID)
				}
			}
			return nil
		},
		sees: (*world).haveSessions,
	},
	{
		name: "end of all other sessions", prepare: (*world).hasSessions,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.People.EndOthers(w.ctx, must(w.crowd().visits(w.holds[0]))(w.t))
		},
		sees: (*world).haveSessions,
	},
	{
		name: "another password", prepare: (*world).hasSessions,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.ChangePassword(w.ctx, must(w.crowd().visits(w.holds[0]))(w.t), fresh, ""))
		},
		sees: (*world).haveSessions,
	},
	{
		name: "proof by password", prepare: (*world).hasSessions,
		act: inSession(func(w *world, cp *controlplane.ControlPlane, me access.Caller) (people.Entered, error) {
			return cp.People.ProveAgain(w.ctx, me, people.Proof{Password: password})
		}),
		sees: (*world).haveSessions,
	},
	{
		name: "proof by passkey", prepare: (*world).hasPasskey,
		act: inSession(func(w *world, cp *controlplane.ControlPlane, me access.Caller) (in people.Entered, err error) {
			asked, err := cp.People.BeginPasskeyProof(w.ctx, me)
			if err != nil {
				return in, err
			}
			return cp.People.ProveByPasskey(w.ctx, me, asked.Token, w.phone.Signs(asked.Options))
		}),
		sees: (*world).haveSessions,
	},
	{
		name: "proof by the issuer", prepare: func(w *world) {
			w.hasIssuer()
			w.holds = []string{must(w.signing().signsOn(ada()))(w.t).Token}
		},
		act: inSession(func(w *world, cp *controlplane.ControlPlane, me access.Caller) (in people.Entered, err error) {
			on, err := cp.People.BeginSignOnProof(w.ctx, me, "")
			if err != nil {
				return in, err
			}
			return cp.People.ProveBySignOn(w.ctx, me, w.signing().back(on, ada()))
		}),
		sees: (*world).haveSessions,
	},
}

// inSession is something that a person does in the session of the first token. It may have got another token without its person
// having heard of it, who logs in anew then.
func inSession(
	do func(*world, *controlplane.ControlPlane, access.Caller) (people.Entered, error),
) func(*world, *controlplane.ControlPlane) error {
	return func(w *world, cp *controlplane.ControlPlane) error {
		me, err := w.crowd().visits(w.holds[0])
		if err != nil {
			return err
		}
		return errOf(do(w, cp, me))
	}
}

func (w *world) hasPassword() { w.crowd().setPassword(w.account.OwnerID, password) }

// hasSessions has the owner be logged in twice.
func (w *world) hasSessions() {
	w.hasPassword()
	for range 2 {
		w.holds = append(w.holds, w.crowd().entered().Token)
	}
}

// hasPasskey has the owner be logged in, with a phone as passkey.
func (w *world) hasPasskey() {
	w.ports.Passkeys = fakepasskeys.Verifier{Entropy: w.ports.Entropy}
	w.ControlPlane = w.process(w.config)
	w.hasPassword()
	c := w.crowd()
	w.holds, w.phone = []string{c.entered().Token}, fakepasskeys.NewDevice("phone")
	must(c.registers(must(c.visits(w.holds[0]))(w.t), w.phone))(w.t)
}

// hasIssuer has an issuer know the owner.
func (w *world) hasIssuer() {
	w.ports.SignOn = fakesignon.New(w.clock)
	w.ControlPlane = w.process(w.config)
}

func (w *world) signing() *signing { return &signing{w.crowd(), w.ports.SignOn.(*fakesignon.Issuer)} }

// hasLink has the operator make a link for the owner.
func (w *world) hasLink() {
	w.hasResets()
	w.holds = []string{must(w.Operator.LinkUser(w.ctx, ownerEmail))(w.t).Token}
}

// hasResets gives the installation a page to choose a password on.
func (w *world) hasResets() {
	w.config = withResets(w.t)
	w.ControlPlane = w.process(w.config)
}

// isLoggedIn is whether the owner is.
func (w *world) isLoggedIn() string { return fmt.Sprint(len(w.sessions()) > 0) }

func (w *world) sessions() []person.Session {
	w.t.Helper()
	return must(w.Operator.UserSessions(w.ctx, ownerEmail))(w.t)
}

// haveSessions are how many sessions there are, and which of the owner's passwords are right.
func (w *world) haveSessions() string {
	w.t.Helper()
	seen := fmt.Sprint(len(w.sessions()))
	for _, p := range []string{password, fresh} {
		_, err := w.crowd().tries(ownerEmail, p)
		seen += fmt.Sprint(" ", err)
	}
	return seen
}

// ofFactors are what people log in with beside a password.
var ofFactors = []wish{
	{
		name: "code of a second factor", prepare: (*world).hasFactor,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.GiveFactor(w.ctx, w.holds[0], w.holds[1], home()))
		},
		sees: func(w *world) string { return w.getsInBy(w.holds[2]) },
	},
	{
		name: "authenticator app", prepare: (*world).hasSessions,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			me := must(w.crowd().visits(w.holds[0]))(w.t)
			app, err := cp.People.BeginFactor(w.ctx, me)
			if err != nil {
				return err
			}
			return errOf(cp.People.ConfirmFactor(w.ctx, me, code(w.crowd(), app)))
		},
		sees: func(w *world) string { return fmt.Sprint(w.crowd().entered().Session.Status) },
	},
	{
		name: "recovery codes, renewed", prepare: (*world).hasFactor,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.RenewRecovery(w.ctx, w.factored()))
		},
		sees: func(w *world) string { return w.getsInBy(w.holds[2]) },
	},
	{
		name: "end of an authenticator app", prepare: (*world).hasFactor,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.People.RemoveFactor(w.ctx, w.factored())
		},
		sees: func(w *world) string { return fmt.Sprint(w.crowd().entered().Session.Status) },
	},
	{
		name: "passkey", prepare: (*world).hasPasskey,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			me := must(w.crowd().visits(w.holds[0]))(w.t)
			asked, err := cp.People.BeginPasskey(w.ctx, me)
			if err != nil {
				return err
			}
			tablet := fakepasskeys.NewDevice("tablet").Registers(asked.Options)
			return errOf(cp.People.FinishPasskey(w.ctx, me, asked.Token, tablet, "a tablet"))
		},
		sees: (*world).havePasskeys,
	},
	{
		name: "end of a passkey", prepare: (*world).hasPasskey,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			me := must(w.crowd().visits(w.holds[0]))(w.t)
			for _, k := range must(w.People.Passkeys(w.ctx, me))(w.t) {
				return cp.People.RemovePasskey(w.ctx, me, k.ID)
			}
			return nil
		},
		sees: (*world).havePasskeys,
	},
	{
		name: "end of lost factors", prepare: (*world).hasFactor,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.ResetFactors(w.ctx, ownerEmail)
		},
		sees: func(w *world) string { return fmt.Sprint(len(w.sessions()), w.crowd().entered().Session.Status) },
	},
	{
		name: "end of a link with an issuer", prepare: func(w *world) {
			w.hasIssuer()
			must(w.signing().signsOn(ada()))(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.UnlinkSignOn(w.ctx, ownerEmail)
		},
		sees: func(w *world) string {
			again := ada()
			again.Subject = "ada-2"
			return fmt.Sprint(len(w.sessions()), must(w.signing().signsOn(again))(w.t).Session.Status)
		},
	},
}

// hasFactor gives the owner an authenticator app. What the owner holds is the token of a log-in that awaits a code, the recovery
// codes, and the token of an open session.
func (w *world) hasFactor() {
	w.t.Helper()
	w.hasPassword()
	c := w.crowd()
	first := c.entered().Token
	me := must(c.visits(first))(w.t)
	app := must(c.People.BeginFactor(w.ctx, me))(w.t)
	codes := must(c.People.ConfirmFactor(w.ctx, me, code(c, app)))(w.t)
	w.holds = slices.Concat([]string{c.entered().Token}, codes, []string{first})
}

// factored is the owner in the session that hasFactor has left.
func (w *world) factored() access.Caller {
	w.t.Helper()
	return must(w.crowd().visits(w.holds[len(w.holds)-1]))(w.t)
}

// getsInBy is what becomes of a log-in with the password and a recovery code.
func (w *world) getsInBy(recovery string) string {
	w.t.Helper()
	in, err := w.People.GiveFactor(w.ctx, w.crowd().entered().Token, recovery, home())
	return fmt.Sprint(in.Session.Status, err)
}

// havePasskeys are the names of the owner's passkeys.
func (w *world) havePasskeys() string {
	w.t.Helper()
	var names []string
	for _, k := range must(w.People.Passkeys(w.ctx, w.crowd().person()))(w.t) {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// ofLinks are what is sent to people, and what they do with it.
var ofLinks = []wish{
	{
		name: "link to choose a password, asked for", prepare: (*world).hasResets,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.People.AskReset(w.ctx, ownerEmail, home())
		},
		sees: func(w *world) string { return w.chooses(w.mailed(ownerEmail)...) },
	},
	{
		name: "password, chosen by a link", prepare: (*world).hasLink,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.People.Reset(w.ctx, w.holds[0], fresh, home()))
		},
		sees: (*world).haveSessions,
	},
	{
		name: "link, made by the operator", prepare: (*world).hasResets,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			link, err := cp.Operator.LinkUser(w.ctx, ownerEmail)
			w.holds = []string{link.Token}
			return err
		},
		sees: func(w *world) string { return w.chooses(w.holds[0]) },
	},
	{
		name: "welcome", prepare: (*world).hasResets,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.WelcomeUser(w.ctx, ownerEmail))
		},
		sees: func(w *world) string { return w.chooses(w.mailed(ownerEmail)...) },
	},
	{
		name: "person, invited by the operator", prepare: (*world).hasResets,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.InviteUser(w.ctx, newUser, true))
		},
		sees: func(w *world) string { return w.chooses(w.mailed(newUser.Email)...) },
	},
	{
		name: "end of all sessions", prepare: (*world).hasSessions,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.EndSessions(w.ctx, ownerEmail))
		},
		sees: (*world).haveSessions,
	},
	{
		name: "acceptance of an invitation", prepare: (*world).hasInvited,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Members.Accept(w.ctx, newcomer(w.mailed(invitee)[0])))
		},
		sees: (*world).haveMembers,
	},
	{
		name: "invitation, sent again", prepare: (*world).hasInvited,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			open := must(w.Members.Invitations(w.ctx, w.reached(w.source())))(w.t)
			return errOf(cp.Members.Resend(w.ctx, w.reached(w.source()), open[0].ID))
		},
		sees: func(w *world) string {
			works := 0
			for _, token := range w.mailed(invitee) {
				if _, err := w.Members.Accept(w.ctx, newcomer(token)); err == nil {
					works++
				}
			}
			return fmt.Sprint(works, w.haveMembers())
		},
	},
	{
		name: "end of an invitation", prepare: (*world).hasInvited,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, i := range must(w.Members.Invitations(w.ctx, w.reached(w.source())))(w.t) {
				return cp.Members.Revoke(w.ctx, w.reached(w.source()), i.ID)
			}
			return nil
		},
		sees: (*world).haveMembers,
	},
	{
		name: "end of a member, by the operator", prepare: (*world).bob,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.RemovePerson(w.ctx, w.source(), invitee))
		},
		sees: (*world).haveMembers,
	},
}

func (w *world) hasInvited() {
	must(w.Members.Add(w.ctx, w.reached(w.source()), invitee, account.Viewer))(w.t)
}

// chooses is by how many of these links a password can be chosen.
func (w *world) chooses(links ...string) string {
	w.t.Helper()
	n := 0
	for _, link := range links {
		if _, err := w.People.Reset(w.ctx, link, fresh, home()); err == nil {
			n++
		}
	}
	return fmt.Sprint(n)
}
