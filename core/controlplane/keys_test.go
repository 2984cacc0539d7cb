package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// desk is where a person manages keys, just after a log-in.
func (c *crowd) desk(of access.Caller) *keys.Desk {
	c.t.Helper()
	return must(c.Keys.Desk(of))(c.t)
}

func (c *crowd) newKey() keys.NewKey {
	return keys.NewKey{AccountID: c.account.ID, Label: "deploy", Scope: account.FullAccount}
}

func TestAPersonManagesTheKeysOfTheirAccount(t *testing.T) {
	c := newCrowd(t)
	owner := c.person()
	d := c.desk(owner)
	key, text, err := d.CreateKey(c.ctx, c.newKey())
	ok(t, err)
	equal(t, "whose it is", c.admit(text).Account.ID, c.account.ID)
	must(d.BindKey(c.ctx, key.ID, keys.Bounds{Expires: &account.Expiry{After: person.Life}}))(t)
	fresh, again, err := d.ReplaceKey(c.ctx, key.ID, keys.Bounds{})
	ok(t, err)
	refused(t, errOf(c.Access.Admit(c.ctx, attempt(text))), fault.Unauthorized)
	c.admit(again)
	equal(t, "keys", len(must(d.Keys(c.ctx, c.account.ID))(t)), 2)
	ok(t, d.RevokeKey(c.ctx, fresh.ID))
	refused(t, errOf(c.Access.Admit(c.ctx, attempt(again))), fault.Unauthorized)

	n := must(d.CreateNamespace(c.ctx, c.account.ID, "web"))(t)
	ci, _, err := d.CreateCIKey(c.ctx, n.ID)
	ok(t, err)
	trust := must(d.AddTrust(c.ctx, keys.NewTrust{NamespaceID: n.ID, Issuer: ciIssuer, Audience: "pgherd", Subject: ciSubject}))(t)
	equal(t, "trusts", len(must(d.Trusts(c.ctx, n.ID))(t)), 1)
	ok(t, d.RemoveTrust(c.ctx, trust.ID))
	ok(t, d.RevokeCIKey(c.ctx, ci.ID))
	ok(t, d.RevokeNamespace(c.ctx, n.ID))

	by := 0
	for _, e := range must(c.Operator.AccountAudit(c.ctx, c.account.ID, ports.Page{}))(t) {
		if e.What.Actor == audit.ByUser(c.account.OwnerID) && e.What.Action != audit.SessionOpened {
			by++
		}
	}
	equal(t, "entries that name the person", by, 10)
}

// What is another account's does not exist for a person, by the same words as what nobody has.
func TestKeysOfOthersDoNotExist(t *testing.T) {
	c := newCrowd(t)
	d := c.desk(c.guest(c.made("shop").Record.ID, account.Admin))
	n := must(c.Operator.CreateNamespace(c.ctx, c.account.ID, "web"))(t)
	ci, _, err := c.Operator.CreateCIKey(c.ctx, n.ID)
	ok(t, err)
	trusted := keys.NewTrust{NamespaceID: n.ID, Issuer: ciIssuer, Audience: "a", Subject: ciSubject}
	trust := must(c.Operator.AddTrust(c.ctx, trusted))(t)
	const nobodys = "00000000-0000-4000-8000-000000000000"
	for what, try := range map[string]func(theirs bool) error{
		"revoke": func(theirs bool) error { return d.RevokeKey(c.ctx, either(theirs, c.caller.Key.ID, "00000000")) },
		"bind": func(theirs bool) error {
			return errOf(d.BindKey(c.ctx, either(theirs, c.caller.Key.ID, "00000000"), keys.Bounds{}))
		},
		"replace": func(theirs bool) error {
			_, _, err := d.ReplaceKey(c.ctx, either(theirs, c.caller.Key.ID, "00000000"), keys.Bounds{})
			return err
		},
		"list": func(theirs bool) error {
			return errOf(d.Namespaces(c.ctx, either(theirs, c.account.ID, id.AccountID(nobodys))))
		},
		"a namespace": func(theirs bool) error {
			return errOf(d.CreateNamespace(c.ctx, either(theirs, c.account.ID, id.AccountID(nobodys)), "mine"))
		},
		"its end": func(theirs bool) error {
			return d.RevokeNamespace(c.ctx, either(theirs, n.ID, id.NamespaceID(nobodys)))
		},
		"its keys":   func(theirs bool) error { return errOf(d.CIKeys(c.ctx, either(theirs, n.ID, id.NamespaceID(nobodys)))) },
		"its trusts": func(theirs bool) error { return errOf(d.Trusts(c.ctx, either(theirs, n.ID, id.NamespaceID(nobodys)))) },
		"a CI key":   func(theirs bool) error { return d.RevokeCIKey(c.ctx, either(theirs, ci.ID, "00000000")) },
		"a trust":    func(theirs bool) error { return d.RemoveTrust(c.ctx, either(theirs, trust.ID, id.TrustID(nobodys))) },
		"another key": func(theirs bool) error {
			n := c.newKey()
			n.AccountID = either(theirs, c.account.ID, id.AccountID(nobodys))
			_, _, err := d.CreateKey(c.ctx, n)
			return err
		},
	} {
		theirs, none := try(true), try(false)
		if !fault.Has(theirs, fault.ValidationError) || none == nil || theirs.Error() != none.Error() {
			t.Errorf("%s: %v, and of nobody %v", what, theirs, none)
		}
	}
	refused(t, errOf(d.Keys(c.ctx, c.account.ID)), fault.ValidationError)
	c.admit(c.key)
}

func either[T any](first bool, one, other T) T {
	if first {
		return one
	}
	return other
}

func TestWhoMayNotMakeKeys(t *testing.T) {
	c := newCrowd(t)
	refused(t, errOf(c.Keys.Desk(c.caller)), fault.KeyScopeDenied)
	refused(t, errOf(c.Keys.Reader(c.caller)), fault.KeyScopeDenied)

	free := c.guest(c.made("shop").Record.ID, account.Viewer)
	n := c.newKey()
	n.AccountID = free.Account.ID
	_, _, err := c.desk(free).CreateKey(c.ctx, n)
	refused(t, err, fault.PlanAPIAccessRequired)
	refused(t, errOf(c.desk(free).CreateNamespace(c.ctx, free.Account.ID, "web")), fault.PlanAPIAccessRequired)
	theirs := must(c.desk(free).Keys(c.ctx, free.Account.ID))(t) // the operator has made one
	ok(t, c.desk(free).RevokeKey(c.ctx, theirs[0].What.ID))

	owner := c.person()
	d := c.desk(owner)
	c.clock.Advance(person.Recent + time.Second)
	refused(t, errOf(c.Keys.Desk(owner)), fault.LoginRequired)
	must(must(c.Keys.Reader(owner))(t).Keys(c.ctx, c.account.ID))(t)
	ok(t, c.People.EndSession(c.ctx, owner, owner.Session.ID))
	_, _, err = d.CreateKey(c.ctx, c.newKey())
	refused(t, err, fault.Unauthorized)
	refused(t, d.RevokeKey(c.ctx, c.caller.Key.ID), fault.Unauthorized)
}
