//go:build linux

package soak

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
)

var operatorDeeds = map[plan.Do]deed{
	"move": ordered(func(d *doing) []string {
		return []string{"database", "move", "--database", d.on.known(), "--to", d.other()}
	}),
	"move closed": ordered(func(d *doing) []string {
		return []string{"database", "move", "--database", d.on.known(), "--to", d.other(), "--closed"}
	}),
	"rehearse a move": {operator: func(d *doing) [][]string {
		return [][]string{{"database", "rehearse", "--database", d.on.known(), "--to", d.other()}}
	}},
	"drain a server": {operator: func(d *doing) [][]string {
		return [][]string{
			{"server", "set", "--server", d.serverID(), "--capacity", "1000"},
			{"server", "disable", "--server", d.first.ServerID()}, {"server", "enable", "--server", d.first.ServerID()},
			{"server", "drain", "--server", d.serverID(), "--partly", "--reason", because},
			{"server", "drain", "--server", d.serverID(), "--stop", "--reason", because},
			{"server", "enable", "--server", d.serverID()},
		}
	}},
	"end a forward": {operator: func(d *doing) [][]string {
		return [][]string{{"forward", "list"}, {"forward", "end", "--database", d.on.known(), "--reason", because}}
	}},
	"suspend and resume": {operator: func(d *doing) [][]string {
		return [][]string{
			{"account", "suspend", "--account", d.by.ID, "--reason", because},
			{"account", "resume", "--account", d.by.ID, "--reason", because},
		}
	}},
	"change quotas": {operator: func(d *doing) [][]string {
		return [][]string{
			{"account", "set", "--account", d.by.ID, "--max-databases", fmt.Sprint(databases + d.step%7)},
			{"account", "show", "--account", d.by.ID},
		}
	}},
	"exchange the key ring's key": {operator: func(d *doing) [][]string {
		seen := [][]string{{"secrets", "keys"}, {"secrets", "hosts"}}
		if d.Choice%2 == 0 {
			return append(seen, []string{"secrets", "rotate"}, []string{"secrets", "prune", "--settle", "1s"})
		}
		return append(seen, []string{"secrets", "stage"}, among(d, []string{"secrets", "unstage"}, []string{"secrets", "promote"}))
	}},
	"exchange the certificate key": {operator: func(*doing) [][]string {
		return [][]string{{"certificate-key", "rotate"}, {"certificate-key", "list"}}
	}},
	"snapshot the metadata": {operator: func(*doing) [][]string { return [][]string{{"installation", "snapshot"}} }},
	"prove the archive": {operator: func(d *doing) [][]string {
		return [][]string{{"drill", "run", "--database", d.on.known()}, {"drill", "list"}}
	}},
	"have the doctor repair": {operator: func(*doing) [][]string { return [][]string{{"doctor", "--repair"}} }},
	"switch a feature": {operator: func(d *doing) [][]string {
		feature := among(d, "restore", "clone", "extension-catalog")
		return [][]string{{"feature", "disable", feature}, {"feature", "enable", feature}}
	}},
	"unenroll and enroll": {operator: func(d *doing) [][]string {
		return [][]string{
			{"unenroll", "--database", d.on.known(), "--route", "clone"}, {"enroll", "--database", d.on.known(), "--route", "all"},
		}
	}},
	"qualify extensions": {operator: func(d *doing) [][]string {
		return [][]string{{"extensions", "qualify", "--server", d.serverID()}}
	}},
	"close for maintenance": {operator: func(*doing) [][]string {
		return [][]string{{"maintenance", "on"}, {"maintenance", "off"}}
	}},
	"read what operators do": {operator: func(d *doing) [][]string {
		of := d.lastDatabase()
		return [][]string{
			{"database", "show", "--database", of}, {"operation", "show", "--operation", d.lastOperation()},
			{"member", "list", "--database", of}, {"database", "movable", "--database", of}, {"enroll", "list"}, {"legacy-roles", "list"},
			{"account", "list"}, {"server", "list"}, {"server", "show", "--server", d.serverID()},
			{"server", "check", "--server", d.serverID()}, {"database", "list"}, {"backup", "list"}, {"operation", "list"},
			{"change", "list", "--database", of}, {"audit", "list", "--account", d.by.ID}, {"usage"},
			{"key", "list", "--account", d.by.ID}, {"storage", "check"}, {"feature", "list"}, {"user", "sessions", "--email", d.by.Email},
			{"ci-namespace", "list"}, {"operator", "list"}, {"extensions", "list"},
		}
	}},
}

// lastDatabase is the one that the account has made last.
func (d *doing) lastDatabase() string {
	last := nobody
	for _, t := range d.all(plan.Database, plan.Single) {
		if t.account == d.by && t.known() != "" {
			last = t.known()
		}
	}
	return last
}

// ordered is an order of an operator's that begins an operation.
func ordered(args func(*doing) []string) deed {
	return deed{
		operator: func(d *doing) [][]string { return [][]string{append(args(d), "--reason", because)} },
		took:     func(ctx context.Context, d *doing, a answer) { d.begins(ctx, operationOf(a), nil) },
	}
}

// serverID is one of the servers; other is one that the database is not on.
func (d *doing) serverID() string { return among(d, d.first.ServerID(), d.second.ServerID()) }

func (d *doing) other() string {
	if at, err := d.serverOf(d.on); err == nil && at == d.second {
		return d.first.ServerID()
	}
	return d.second.ServerID()
}

// looks read everything that there is of a database, and of an account.
var looks = map[plan.Do]deed{
	"read a database": {
		api: func(ctx context.Context, d *doing) (any, error) {
			of, c := d.on.database(), d.api()
			var last error
			keep := func(err error) { // one that is refused, by the kind of the database, refuses nothing else
				if err != nil && apiclient.Unanswered(err) {
					last = err
				}
			}
			record, err := c.Databases.Get(ctx, of)
			if err != nil {
				return nil, err
			}
			_, err = c.Backups.List(of).Page(ctx, apiclient.Page{})
			keep(err)
			operations, err := c.Operations.List(of).Page(ctx, apiclient.Page{})
			keep(err)
			if len(operations.Data) > 0 {
				_, err = c.Operations.Get(ctx, operations.Data[0].ID)
				keep(err)
			}
			_, err = c.Activity.List(of).Page(ctx, apiclient.Page{})
			keep(err)
			for _, ask := range []func() error{
				func() error { _, err := c.Allowlist.List(ctx, of); return err },
				func() error { _, err := c.QueryTimeouts.Get(ctx, of); return err },
				func() error { _, err := c.SlowQueries.Get(ctx, of, ""); return err },
				func() error { _, err := c.Members.List(ctx, of); return err },
				func() error { _, err := c.Members.ListInvitations(ctx, of); return err },
				func() error { _, err := c.Extensions.List(ctx, of); return err },
				func() error { _, err := c.Usage.Get(ctx, of, "", "", ""); return err },
				func() error { _, err := c.Recovery.GetWindow(ctx, of); return err },
				func() error { _, err := c.Recovery.GetCertificate(ctx, of); return err },
				func() error { _, err := c.Roles.List(ctx, of, true); return err },
				func() error { _, err := c.LegacyRoles.List(ctx, of, true); return err },
				func() error { _, err := c.Logins.List(ctx, of); return err },
			} {
				keep(ask())
			}
			return record, last
		},
		svc: func(d *doing) []string {
			of := d.on.known()
			return among(d, []string{"databases", "get", of}, []string{"backups", "list", of}, []string{"operations", "list", of},
				[]string{"databases", "allowlist", "list", of}, []string{"databases", "timeouts", of},
				[]string{"databases", "slow-queries", of},
				[]string{"members", "list", of}, []string{"invitations", "list", of}, []string{"databases", "extensions", of},
				[]string{"databases", "usage", of}, []string{"databases", "window", of}, []string{"databases", "certificate", of},
				[]string{"managed", "custom-list", of}, []string{"legacy-roles", "list", of}, []string{"managed", "logins", of},
				[]string{"connect", of}, []string{"operations", "get", d.lastOperation()})
		},
		pages: func(ctx context.Context, d *doing) (answer, error) {
			return nil, d.browse(ctx, "/databases/"+d.on.known(), "/databases/"+d.on.known()+"/backups")
		},
	},
	"read an account": {
		api: func(ctx context.Context, d *doing) (any, error) {
			c := d.api()
			if _, err := c.Databases.List().Page(ctx, apiclient.Page{}); err != nil {
				return nil, err
			}
			_, _ = c.Databases.ListDeleted().Page(ctx, apiclient.Page{})
			_, _ = c.Usage.List("", "").Page(ctx, apiclient.Page{})
			_, _ = c.Webhooks.List().Page(ctx, apiclient.Page{})
			namespaces, err := c.CINamespaces.List(ctx)
			if err == nil && len(namespaces) > 0 {
				_, err = c.CINamespaces.ListTrusts(ctx, namespaces[0].ID)
			}
			return nil, err
		},
		svc: func(d *doing) []string {
			return among(d, []string{"databases", "list"}, []string{"databases", "deleted"}, []string{"usage"},
				[]string{"webhooks", "list"},
				[]string{"trusts", "namespaces"}, []string{"trusts", "list", "soak"}, []string{"auth", "status"})
		},
		pages: func(ctx context.Context, d *doing) (answer, error) {
			return nil, d.browse(ctx, "/", "/databases/deleted", "/webhooks")
		},
	},
}
