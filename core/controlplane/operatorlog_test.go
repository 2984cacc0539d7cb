package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// What an operator does is in the log once, with who did it and on what; what changes nothing, and what is refused, is not.
func TestTheLogOfAnOperator(t *testing.T) {
	w := newWorld(t)
	ctx := base.ByOperator(w.ctx, base.Mandate{Operator: "grace"})
	o, of := w.Operator, w.account.ID
	db := w.made("shop").Record.ID
	var key account.Key
	var added server.Server
	secrets := []string{w.key, "5eabc1d2e3f405162738495a6b7c8d9e", "another secret"}
	three := 3
	steps := []struct {
		did  audit.Action // "" for what leaves no entry
		on   string       // the log: "account", "database", "" for the installation
		do   func() error
		want audit.Details // among others
	}{
		{audit.AccountChanged, "account", func() error {
			return errOf(o.ChangeAccount(ctx, of, func(a *account.Account) { a.Plan, a.MaxDatabases = account.Business, &three }))
		}, audit.Details{"plan": "pro -> business", "maxDatabases": "as planned -> 3"}},
		{"", "account", func() error { return errOf(o.ChangeAccount(ctx, of, func(*account.Account) {})) }, nil},
		{audit.AccountAutoEnroll, "account", func() error { return o.SetAutoEnroll(ctx, of, true) }, audit.Details{"on": "true"}},
		{"", "account", func() error { return o.SetAutoEnroll(ctx, of, true) }, nil},
		{"", "account", func() error { return errOf(o.Resume(ctx, of, "paid")) }, nil},
		{audit.AccountSuspended, "account", func() error { return errOf(o.Suspend(ctx, of, "unpaid")) }, audit.Details{
			"reason": "unpaid",
		}},
		{"", "account", func() error { return errOf(o.Suspend(ctx, of, "abuse")) }, nil},
		{audit.AccountResumed, "account", func() error { return errOf(o.Resume(ctx, of, "paid")) }, audit.Details{"reason": "paid"}},
		{audit.KeyCreated, "account", func() (err error) {
			var text string
			key, text, err = o.CreateKey(ctx, keys.NewKey{
				AccountID: of, Label: "deploy", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
			})
			secrets = append(secrets, text)
			return err
		}, audit.Details{"label": "deploy", "scope": "selected", "databases": string(db), "expiresAt": "never", "networks": "any"}},
		{audit.KeyChanged, "account", func() error {
			soon, office := account.Expiry{After: time.Hour}, network.List("192.0.2.0/24")
			return errOf(o.BindKey(ctx, key.ID, keys.Bounds{Expires: &soon, Networks: &office}))
		}, audit.Details{"label": "deploy", "expiresAt": "never -> 2026-01-05T10:40:00Z", "networks": "any -> 192.0.2.0/24"}},
		{"", "account", func() error { return errOf(o.BindKey(ctx, key.ID, keys.Bounds{})) }, nil},
		{audit.KeyReplaced, "account", func() (err error) {
			var text string
			key, text, err = o.ReplaceKey(ctx, key.ID, keys.Bounds{})
			secrets = append(secrets, text)
			return err
		}, audit.Details{"label": "deploy"}},
		{audit.KeyRevoked, "account", func() error { return o.RevokeKey(ctx, key.ID) }, audit.Details{"label": "deploy"}},
		{audit.Enrolled, "database", func() error { return o.Enroll(ctx, db, "clone") }, audit.Details{"routes": "clone"}},
		{"", "database", func() error { return o.Enroll(ctx, db, "clone") }, nil},
		{audit.Unenrolled, "database", func() error { return o.Unenroll(ctx, db, rollout.All) }, audit.Details{"routes": "clone"}},
		{audit.FeatureEnabled, "", func() error { return o.SetFeature(ctx, "clone", true) }, audit.Details{"feature": "clone"}},
		{"", "", func() error { return o.SetFeature(ctx, "clone", true) }, nil},
		{audit.FeatureDisabled, "", func() error { return o.SetFeature(ctx, "clone", false) }, audit.Details{"feature": "clone"}},
		{audit.MaintenanceBegun, "", func() error { return o.SetMaintenance(ctx, true) }, nil},
		{"", "", func() error { return o.SetMaintenance(ctx, true) }, nil},
		{audit.MaintenanceEnded, "", func() error { return o.SetMaintenance(ctx, false) }, nil},
		{audit.ServerAdded, "", func() (err error) {
			added, err = o.AddServer(ctx, operator.NewServer{
				Name: "two", AgentURL: "https://two:8090", Secret: secrets[1], CA: anAuthority, PublicHost: "two", PublicPort: 6432,
				Capacity: 9,
			})
			return err
		}, audit.Details{"server": "two", "agentUrl": "https://two:8090", "capacity": "9"}},
		{audit.ServerChanged, "", func() error {
			return errOf(o.ChangeServer(ctx, w.machine.ID, func(s *server.Server) { s.Capacity, s.Enabled = 7, false }))
		}, audit.Details{"server": "one", "capacity": "1000 -> 7", "enabled": "true -> false"}},
		{"", "", func() error {
			return errOf(o.ChangeServer(ctx, w.machine.ID, func(s *server.Server) { s.Capacity = 7 }))
		}, nil},
		{audit.ArchiveKeyShown, "", func() error {
			_, key, err := o.ArchiveKey(ctx, added.ID, "it burned")
			secrets = append(secrets, key)
			return errors.Join(err, command.SetArchiveKey{Key: key}.Check())
		}, audit.Details{"server": "two", "reason": "it burned"}},
		{"", "", func() error {
			_, key, err := o.ArchiveKey(ctx, added.ID, " ")
			if !fault.Has(err, fault.ValidationError) || key != "" {
				return fmt.Errorf("without a reason: %w", err)
			}
			return nil
		}, nil},
	}
	for _, step := range steps {
		w.clock.Advance(time.Minute)
		at := w.clock.Now()
		ok(t, step.do())
		logs := map[string]operator.Entries{
			"account":  must(o.AccountAudit(w.ctx, of, ports.Page{}))(t),
			"database": must(o.Audit(w.ctx, db, ports.Page{}))(t),
			"":         must(o.InstallationAudit(w.ctx, ports.Page{}))(t),
		}
		var fresh operator.Entries
		for _, e := range logs[step.on] {
			if !e.What.At.Before(at) {
				fresh = append(fresh, e)
			}
		}
		if step.did == "" {
			if len(fresh) > 0 {
				t.Errorf("nothing changed, and the log has %+v", fresh)
			}
			continue
		}
		if len(fresh) != 1 || fresh[0].What.Action != step.did || fresh[0].What.Actor != audit.Operator {
			t.Errorf("%s: the log has %+v", step.did, fresh)
			continue
		}
		details := fresh[0].What.Details
		equal(t, "the operator", details[audit.OperatorDetail], "grace")
		for name, want := range step.want {
			equal(t, fmt.Sprint(step.did, ": ", name), details[name], want)
		}
	}
	text := fmt.Sprint(must(o.AccountAudit(w.ctx, of, ports.Page{}))(t), must(o.InstallationAudit(w.ctx, ports.Page{}))(t))
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

func TestARefusedCommandIsNotInTheLog(t *testing.T) {
	w := newWorld(t)
	before := len(must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t))
	tooMany := 1_000_001
	_, err := w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.MaxDatabases = &tooMany })
	refused(t, err, fault.ValidationError)
	_, _, err = w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "x", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{"none"},
	})
	refused(t, err, fault.ValidationError)
	equal(t, "entries", len(must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t)), before)
}

// A log is read in pages, whatever the period.
func TestAnExportOfTheLog(t *testing.T) {
	w := newWorld(t)
	const entries = 2500
	start := w.clock.Now().Add(time.Hour)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		for i := range entries {
			if err := tx.Audit().Add(ctx, audit.Entry{
				ID: base.NewID[id.AuditID](w.ports.Entropy), At: start.Add(time.Duration(i/2) * time.Second), AccountID: w.account.ID,
				Actor: audit.System, Action: audit.DatabaseStarted, Details: audit.Details{"i": fmt.Sprint(i)},
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	for name, c := range map[string]struct {
		in    operator.Period
		want  int // entries
		pages int
	}{
		"all of it":     {operator.Period{Since: start}, entries, 3},
		"a page":        {operator.Period{Since: start, Limit: 1000}, 1000, 1},
		"some more":     {operator.Period{Since: start, Limit: 1001}, 1001, 2},
		"a period":      {operator.Period{Since: second(100), Until: second(700)}, 1200, 2},
		"its newest":    {operator.Period{Since: second(100), Until: second(700), Limit: 3}, 3, 1},
		"a bare second": {operator.Period{Since: second(7), Until: second(8)}, 2, 1},
		"nothing":       {operator.Period{Since: second(7), Until: second(7)}, 0, 0},
		"the future":    {operator.Period{Since: second(entries)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got operator.Entries
			pages := 0
			ok(t, operator.EachPage(w.ctx, func(ctx context.Context, p ports.Page) (operator.Entries, error) {
				return w.Operator.AccountAudit(ctx, w.account.ID, p)
			}, c.in, func(page operator.Entries) error {
				got, pages = append(got, page...), pages+1
				return nil
			}))
			equal(t, "entries", len(got), c.want)
			equal(t, "pages", pages, c.pages)
			if !slices.IsSortedFunc(got, func(a, b base.By[audit.Entry]) int { return b.What.At.Compare(a.What.At) }) {
				t.Error("they are not newest first")
			}
			for _, e := range got {
				if e.What.At.Before(c.in.Since) || !c.in.Until.IsZero() && !e.What.At.Before(c.in.Until) {
					t.Fatalf("%s is outside the period", e.What.At)
				}
			}
		})
	}
}

// anAuthority is a certificate.
const anAuthority = `-----BEGIN CERTIFICATE-----
MIIBMDCB46ADAgECAhQ/m6jTvNx4PBnGlYwK/cWsOUinFTAFBgMrZXAwDTELMAkG
A1UEAwwCQ0EwIBcNMjYxMTI5MDMzMDQ3WhgPMjEyNjExMDUwMzMwNDdaMA0xCzAJ
BgNVBAMMAkNBMCowBQYDK2VwAyEAy3D+m0dsR4fk8HYFbE2+6MCHUXY+uRkFJjHN
h53lTrmjUzBRMB0GA1UdDgQWBBSi8mwKqJP0SG96JRQTN7/HjFQ8WzAfBgNVHSME
GDAWgBSi8mwKqJP0SG96JRQTN7/HjFQ8WzAPBgNVHRMBAf8EBTADAQH/MAUGAytl
cANBAKuy7y0RFbu0qy+P+jjUIk7VoCVoQ1qxYkfLWXjC1//26K4EPiUVkT1GPQ7Y
hwxvFpRTYK/w6dk+8CmxKqXVJQs=
-----END CERTIFICATE-----
`
