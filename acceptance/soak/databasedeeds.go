//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// The facts of a database, as its record shows them.
const (
	status      = "status"
	environment = "environment"
	schedule    = "daily backups"
	timeouts    = "query timeouts"
	network     = "network "
)

// because is why an operator does something.
const because = "the soak's plan says so"

var databaseDeeds = map[plan.Do]deed{
	"create a database":              create(database.Managed),
	"create a single-login database": create(database.SingleLogin),
	"stop":                           lifecycle(database.Stop, string(database.Stopped)),
	"start":                          lifecycle(database.Start, string(database.Active)),
	"restart":                        lifecycle(database.Restart, ""),
	"label": {
		api: func(ctx context.Context, d *doing) (any, error) {
			label := d.label()
			return d.api().Databases.SetEnvironment(ctx, d.on.database(), wire.SetEnvironment{Environment: &label})
		},
		svc:   func(d *doing) []string { return []string{"databases", "environment", d.on.known(), string(d.label())} },
		wants: func(d *doing) []wish { return []wish{{fact: d.on.fact(environment), value: string(d.label())}} },
	},
	"choose daily backups": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Backups.SetPolicy(ctx, d.on.database(), wire.SetBackupPolicy{ScheduledBackup: d.schedule()})
		},
		svc: func(d *doing) []string {
			return []string{"databases", "backup-policy", d.on.known(), string(d.schedule())}
		},
		wants: func(d *doing) []wish { return []wish{{fact: d.on.fact(schedule), value: string(d.schedule())}} },
	},
	"choose query timeouts": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().QueryTimeouts.Set(ctx, d.on.database(), wire.SetQueryTimeouts{Profile: d.profile()}, d.key())
		},
		svc: func(d *doing) []string {
			return []string{"databases", "timeouts-set", d.on.known(), string(d.profile()), "--idempotency-key", d.name}
		},
		// The change may still be undone, where its server refuses it for good.
		wants: func(d *doing) []wish {
			return []wish{{fact: d.on.fact(timeouts), value: string(d.profile()), later: true}}
		},
	},
	"install an extension": changeExtension(extension.Install, "install"),
	"upgrade an extension": changeExtension(extension.Upgrade, "upgrade"),
	"delete": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Databases.Delete(ctx, d.on.database())
		},
		svc:   func(d *doing) []string { return []string{"databases", "delete", d.on.known(), "--yes"} },
		wants: func(d *doing) []wish { return []wish{{d.on.fact(status), string(database.Deleted), true}} },
		took: func(ctx context.Context, d *doing, a answer) {
			d.begins(ctx, a.text("operation", "id"), d.deleted)
		},
	},
	"recover": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Databases.Recover(ctx, d.on.database())
		},
		svc:   func(d *doing) []string { return []string{"databases", "recover", d.on.known()} },
		wants: func(d *doing) []wish { return []wish{{d.on.fact(status), string(database.Active), true}} },
		took: func(ctx context.Context, d *doing, a answer) {
			d.begins(ctx, a.text("operation", "id"), func(s operation.Status, _ answer, _ time.Time) {
				if s == operation.Succeeded {
					d.facts.Note(d.on.fact(status), string(database.Active), d.step, model.Unknown)
				}
			})
		},
	},
	"download a deletion backup": {
		api: func(ctx context.Context, d *doing) (any, error) {
			file, err := d.api().Databases.DownloadDeletionBackup(ctx, d.on.database())
			return nil, drain(file, err)
		},
	},
	"allow a network": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Allowlist.Add(ctx, d.on.database(), wire.AddAllowlistEntry{CIDR: d.cidr()})
		},
		svc: func(d *doing) []string {
			return []string{"databases", "allowlist", "add", d.on.known(), d.cidr(), "--yes"}
		},
		wants: func(d *doing) []wish {
			return []wish{{fact: d.on.fact(network + d.cidr()), value: there}}
		},
		took: func(_ context.Context, d *doing, a answer) { d.self().is(a.text("id")) },
	},
	"disallow a network": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return nil, d.api().Allowlist.Remove(ctx, d.in.database(), entryOf(d.on))
		},
		svc: func(d *doing) []string {
			return []string{"databases", "allowlist", "remove", d.in.known(), d.on.known(), "--yes"}
		},
		wants: func(d *doing) []wish { return []wish{{fact: d.in.fact(network + cidrOf(d.on.step)), value: gone}} },
	},
}

// Whether something is listed.
const (
	there = "there"
	gone  = ""
)

// label is one of the environments.
func (d *doing) label() database.Environment {
	return among(d, database.Production, database.Staging, database.Development, database.Other)
}

// schedule is one of the schedules.
func (d *doing) schedule() database.Schedule { return among(d, database.Daily, database.NoSchedule) }

// profile is one of the profiles of query timeouts.
func (d *doing) profile() querytimeout.Profile {
	return among(d, querytimeout.Standard, querytimeout.Balanced, querytimeout.Short)
}

// cidr is a network of its own for each step. All have the driver's address in them or not: the first half do.
func (d *doing) cidr() string { return cidrOf(d.step) }

// cidrOf is that of a step: the driver is in each, so that those who were let in stay in.
func cidrOf(step int) string {
	bits := 8 + step%24
	return fmt.Sprintf("%s/%d", masked(bits), bits)
}

// create makes a database. It is asked for with a key, so that whoever asks again gets the same one.
func create(model database.RoleModel) deed {
	return deed{
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Databases.Create(ctx, wire.CreateDatabase{Name: d.name, DisplayName: d.name, RoleModel: &model}, d.key())
		},
		svc: func(d *doing) []string {
			return []string{"databases", "create", d.name, "--role-model", string(model), "--idempotency-key", d.name}
		},
		operator: func(d *doing) [][]string {
			return [][]string{{
				"database", "create", "--account", d.by.ID, "--name", d.name, "--role-model", string(model), "--scheduled-backup", "none",
				"--reason", because,
			}}
		},
		wants: func(d *doing) []wish { return []wish{{fact: d.self().fact(status), value: string(database.Active)}} },
		took:  func(ctx context.Context, d *doing, a answer) { d.isMade(ctx, d.self(), a) },
	}
}

// isMade takes the record of a new database with its owner's password, and has an operator admit it to every route.
func (d *doing) isMade(ctx context.Context, t *thing, a answer) {
	known := a.text("id")
	if known == "" {
		known = a.text("databaseId")
	}
	t.is(known)
	d.told(t, string(database.OwnerLogin), t.name, a.text("password"))
	d.enroll(ctx, t)
}

// enroll admits a database to the routes of limited rollout. The operator goes on until that is done: without it, a plan tries
// little.
func (r *run) enroll(ctx context.Context, t *thing) {
	commands := [][]string{{"enroll", "--database", t.known(), "--route", "all"}}
	if t.kind == plan.Single {
		commands = append(commands, []string{"legacy-roles", "activate", "--database", t.known()})
	}
	for _, c := range commands {
		for ctx.Err() == nil {
			if _, err := r.admin(ctx, c...); err == nil {
				break
			}
			wait(ctx, time.Second)
		}
	}
}

// told takes a password that was shown for a login of a database.
func (r *run) told(t *thing, name, username, password string) {
	if password == "" {
		return
	}
	r.secrets.Add(password, fmt.Sprintf("a password of %s of the database %s", name, t.name))
	l := t.login(name)
	l.username = username
	l.Told(password)
}

// lifecycle stops, starts or restarts. Whoever is in by then is not, afterwards.
func lifecycle(action database.Event, becomes string) deed {
	did := deed{
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Databases.SetLifecycle(ctx, d.on.database(), wire.SetLifecycle{Action: action})
		},
		svc: func(d *doing) []string {
			args := []string{"databases", string(action), d.on.known()}
			if action != database.Start {
				args = append(args, "--yes")
			}
			return args
		},
		wants: func(d *doing) []wish {
			if becomes == "" {
				return nil
			}
			return []wish{{fact: d.on.fact(status), value: becomes}}
		},
	}
	if action != database.Restart {
		did.operator = func(d *doing) [][]string {
			return [][]string{{"database", string(action), "--database", d.on.known(), "--reason", because}}
		}
	}
	return did
}

// changeExtension asks for an operation on one of two extensions.
func changeExtension(kind extension.Change, verb string) deed {
	return deed{
		api: func(ctx context.Context, d *doing) (any, error) {
			o, err := d.api().Extensions.Change(ctx, d.on.database(), wire.ChangeExtension{Extension: d.extension(), Kind: kind}, d.key())
			if err == nil {
				_, _ = d.api().Extensions.GetOperation(ctx, d.on.database(), o.ID) // a look, which may be lost
			}
			return o, err
		},
		svc: func(d *doing) []string {
			return []string{
				"databases", "extensions", verb, d.on.known(), string(d.extension()), "--idempotency-key", d.name, "--timeout", "100s",
			}
		},
		took: func(ctx context.Context, d *doing, a answer) { d.begins(ctx, operationOf(a), nil) },
	}
}

func (d *doing) extension() extension.Name {
	return among(d, extension.Name("citext"), extension.Name("pg_trgm"))
}

// deleted takes how a deletion has ended: the logins are closed where it has succeeded.
func (d *doing) deleted(s operation.Status, _ answer, _ time.Time) {
	if s == operation.Succeeded {
		d.facts.Note(d.on.fact(status), string(database.Deleted), d.step, model.Unknown)
	}
}

// drain reads a download to its end.
func drain(file *apiclient.Download, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, file)
	return errors.Join(err, file.Close())
}
