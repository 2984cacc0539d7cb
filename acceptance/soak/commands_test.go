//go:build linux

package soak

import (
	"net/http"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/webhooks"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/svc/cli"
)

// Each action by a command is one that there is, with flags and arguments that it takes: a soak finds that out only where it
// chooses the action.
func TestCommandsAreUsedAsTheyCanBe(t *testing.T) {
	r := unstarted(t)
	for _, c := range plan.Catalog {
		for choice := range uint64(24) { // whatever an action chooses of
			d := r.supposed(c, choice)
			if does := deeds[c.Do]; does.svc != nil {
				parses(t, cli.Root(), append(does.svc(d), "--json", "--insecure-http"))
			}
			if does := deeds[c.Do]; does.operator != nil {
				for _, args := range does.operator(d) {
					parses(t, admin.Command(), append([]string{"--json"}, args...))
				}
			}
		}
	}
}

func parses(t *testing.T, root *cobra.Command, args []string) {
	t.Helper()
	c, rest, err := root.Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err == nil {
		err = c.ValidateRequiredFlags()
	}
	if err != nil || !c.Runnable() {
		t.Errorf("%s %q: %v", root.Name(), args, err)
	}
}

// unstarted is a run of which no process is started.
func unstarted(t *testing.T) *run {
	t.Helper()
	return &run{
		world: &world{
			dir: t.TempDir(), first: &stack.Stack{Metadata: &cluster.Postgres{}}, second: &stack.Stack{}, secrets: &model.Canaries{},
			receiver: &webhooks.Receiver{URL: "https://20.30.40.50"}, issuer: &oidcissuer.Issuer{URL: "https://20.30.40.50"},
			dashboards: []*stack.Host{{URL: "https://host1"}, {URL: "https://host2"}}, http: http.DefaultClient,
		},
		facts: model.NewFacts(), things: map[int]*thing{},
		accounts: []*customer{
			{Account: stack.Account{ID: aUUID, Email: "first@example.com"}, namespace: aUUID},
			{Account: stack.Account{ID: aUUID, Email: "second@example.com"}, number: 1},
		},
		plan: plan.Plan{Steps: []plan.Step{{Number: 3}}},
	}
}

const aUUID = "4f9b2f34-7c14-4ac0-9f0e-2f2f6f0f4b11"

// supposed is an action on what two steps before have made.
func (r *run) supposed(c plan.Capability, choice uint64) *doing {
	in := &thing{
		step: 1, kind: plan.Database, account: r.accounts[0], name: "soak-1", id: aUUID, rows: &model.Table{},
		begun: time.Now().Add(-time.Hour),
	}
	on := in
	if len(c.On) > 0 && c.On[0] != plan.Database {
		on = &thing{step: 2, kind: c.On[0], account: in.account, in: in, name: "soak-2", id: aUUID, begun: in.begun}
	}
	r.things[3] = &thing{step: 3, kind: c.Makes, account: in.account, in: in, name: "soak-3", rows: &model.Table{}}
	return &doing{
		run: r, Action: plan.Action{Do: c.Do, Choice: choice}, step: 3, by: r.accounts[0], on: on, in: in, name: "soak-3",
		begun: time.Now(),
	}
}
