//go:build linux

package soak

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

var roleDeeds = map[plan.Do]deed{
	"create a role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			made, err := d.api().Roles.Create(ctx, d.on.database(), d.role(), d.key())
			if err == nil && made.Status != role.Ready { // it was interrupted, and goes on step by step
				_, _ = d.api().Roles.Prepare(ctx, d.on.database(), made.RoleID)
				_, _ = d.api().Roles.Admit(ctx, d.on.database(), made.RoleID)
			}
			return made, err
		},
		svc: func(d *doing) []string {
			return []string{
				"managed", "custom-create", d.on.known(), d.name, "--access-profile", string(d.role().AccessProfile),
				"--connection-limit", "1", "--idempotency-key", d.name,
			}
		},
		wants: wantsRole(role.Ready),
		took:  func(_ context.Context, d *doing, a answer) { d.self().is(a.text("roleId")) },
	},
	"rename a role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Roles.Rename(ctx, d.in.database(), d.roleID(), wire.RenameRole{DisplayName: d.name})
		},
		svc: func(d *doing) []string {
			return []string{"managed", "custom-rename", d.in.known(), d.on.known(), d.name}
		},
	},
	"reveal a role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Roles.Reveal(ctx, d.in.database(), d.roleID())
		},
		svc:  func(d *doing) []string { return []string{"managed", "custom-credentials", d.in.known(), d.on.known()} },
		took: revealed,
	},
	"rotate a role": {
		api: func(ctx context.Context, d *doing) (any, error) { return d.change(ctx, role.Rotation) },
		svc: func(d *doing) []string {
			return []string{"managed", "custom-rotate", d.in.known(), d.on.known(), "--yes", "--idempotency-key", d.name}
		},
		took: changed, lost: changing,
	},
	"revoke a role": {
		api: func(ctx context.Context, d *doing) (any, error) { return d.change(ctx, role.Revocation) },
		svc: func(d *doing) []string {
			return []string{"managed", "custom-revoke", d.in.known(), d.on.known(), "--yes", "--idempotency-key", d.name}
		},
		wants: wantsRole(role.Revoked),
		took:  closed, lost: changing,
	},
	"delete a role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			removal, err := d.api().Roles.Delete(ctx, d.in.database(), d.roleID(), wire.DeleteRole{Confirm: true})
			if err == nil && removal.Status == pending {
				_, _ = d.api().Roles.Remove(ctx, d.in.database(), d.roleID()) // it goes on
			}
			return removal, err
		},
		svc: func(d *doing) []string {
			return []string{"managed", "custom-delete", d.in.known(), d.on.known(), "--yes"}
		},
		wants: wantsRole(role.Revoked, role.Removed), // what it owns may keep it from being removed, and it is shut out first
		took:  closed, lost: changing,
	},
	"activate for roles": {operator: func(d *doing) [][]string {
		return [][]string{
			{"legacy-roles", "deactivate", "--database", d.on.known()}, {"legacy-roles", "activate", "--database", d.on.known()},
		}
	}},
	"opt in for roles": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().LegacyRoles.OptIn(ctx, d.on.database())
		},
		svc: func(d *doing) []string { return []string{"legacy-roles", "opt-in", d.on.known()} },
	},
	"create a legacy role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			made, err := d.api().LegacyRoles.Create(ctx, d.on.database(), d.role(), d.key())
			if err != nil {
				return nil, err
			}
			grant, err := d.api().LegacyRoles.Prepare(ctx, d.on.database(), made.RoleID)
			if err == nil {
				err = d.grantConnect(ctx, grant.Username)
			}
			if err == nil {
				_, err = d.api().LegacyRoles.Admit(ctx, d.on.database(), made.RoleID)
			}
			if err != nil { // nobody knows how far it is: whoever goes on asks for that first
				_, _ = d.api().LegacyRoles.Reconcile(ctx, d.on.database(), made.RoleID)
			}
			return made, nil
		},
		svc: func(d *doing) []string {
			return []string{
				"legacy-roles", "create", d.on.known(), d.name, "--access-profile", string(d.role().AccessProfile), "--connection-limit", "1",
				"--idempotency-key", d.name,
			}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			d.self().is(a.text("roleId"))
			if d.Way == plan.Svc {
				for _, step := range []string{"prepare", "reconcile", "admit"} {
					_, _ = d.runSvc(ctx, "legacy-roles", step, d.on.known(), d.self().known()) // each may be refused: CONNECT is not granted
				}
			}
		},
	},
	"rotate a legacy role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().LegacyRoles.Change(ctx, d.in.database(), d.roleID(), confirmed(role.Rotation), d.key())
		},
		svc: func(d *doing) []string {
			return []string{"legacy-roles", "rotate", d.in.known(), d.on.known(), "--yes", "--idempotency-key", d.name}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			changed(ctx, d, a)
			if operationID := a.text("operationId"); operationID != "" {
				_, _ = d.api().LegacyRoles.GetChange(ctx, d.in.database(), d.roleID(), id.OperationID(operationID))
				_, _ = d.api().LegacyRoles.ContinueChange(ctx, d.in.database(), d.roleID(), id.OperationID(operationID), disconnect)
				_, _ = d.runSvc(ctx, "legacy-roles", "change", d.in.known(), d.on.known(), operationID)
			}
			_, _ = d.runSvc(ctx, "legacy-roles", "credentials", d.in.known(), d.on.known())
		},
		lost: changing,
	},
	"remove a legacy role": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().LegacyRoles.Remove(ctx, d.in.database(), d.roleID())
		},
		svc: func(d *doing) []string {
			verb := among(d, "revoke", "delete")
			args := []string{"legacy-roles", verb, d.in.known(), d.on.known(), "--yes"}
			if verb == "revoke" {
				args = append(args, "--idempotency-key", d.name)
			}
			return args
		},
		took: closed, lost: changing,
	},
	"reveal a login": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Logins.Reveal(ctx, d.on.database(), d.managed())
		},
		svc: func(d *doing) []string {
			return []string{"managed", "logins-credentials", d.on.known(), string(d.managed())}
		},
		took: func(_ context.Context, d *doing, a answer) {
			d.told(d.on, string(d.managed()), a.text("username"), a.text("password"))
		},
	},
	"rotate a login": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Logins.Rotate(ctx, d.on.database(), d.managed(), disconnect, d.key())
		},
		svc: func(d *doing) []string {
			return []string{"managed", "logins-rotate", d.on.known(), string(d.managed()), "--yes", "--idempotency-key", d.name}
		},
		took: func(_ context.Context, d *doing, a answer) { d.rotated(string(d.managed()), a) },
		lost: func(d *doing) { d.on.login(string(d.managed())).Changing() },
	},
	"rotate the owner": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Logins.Rotate(ctx, d.on.database(), database.OwnerLogin, disconnect, d.key())
		},
		svc: func(d *doing) []string {
			return []string{"managed", "logins-rotate", d.on.known(), "owner", "--yes", "--idempotency-key", d.name}
		},
		operator: func(d *doing) [][]string {
			return [][]string{{"database", "rotate-owner", "--database", d.on.known(), "--reason", because, "--yes"}}
		},
		took: func(_ context.Context, d *doing, a answer) { d.rotated(string(database.OwnerLogin), a) },
		lost: func(d *doing) { d.on.login(string(database.OwnerLogin)).Changing() },
	},
}

const pending = "pending"

var disconnect = wire.Disconnect{ConfirmDisconnect: true}

func confirmed(kind role.Kind) wire.ChangeRole {
	return wire.ChangeRole{Kind: kind, ConfirmDisconnect: true}
}

// role is the role that the action makes.
func (d *doing) role() wire.CreateRole {
	profile := among(d, role.ReadOnly, role.ReadWrite, role.Custom)
	return wire.CreateRole{DisplayName: d.name, AccessProfile: profile, ConnectionLimit: 1}
}

func (d *doing) roleID() id.RoleID { return id.RoleID(d.on.known()) }

// managed is one of the logins whose passwords can be shown.
func (d *doing) managed() database.Login {
	return among(d, database.RuntimeLogin, database.ReadonlyLogin)
}

// wantsRole is that a role becomes one of these. The change may be pending, and ends by itself.
func wantsRole(list ...role.Status) func(*doing) []wish {
	return func(d *doing) (wishes []wish) {
		t := d.on
		if t.kind != plan.Role {
			t = d.self()
		}
		for _, status := range list {
			wishes = append(wishes, wish{t.fact("status"), string(status), true})
		}
		return wishes
	}
}

// change rotates or revokes a role, looks at that, and has it go on.
func (d *doing) change(ctx context.Context, kind role.Kind) (any, error) {
	c, err := d.api().Roles.Change(ctx, d.in.database(), d.roleID(), confirmed(kind), d.key())
	if err == nil && c.Status == role.Pending {
		_, _ = d.api().Roles.GetChange(ctx, d.in.database(), d.roleID(), c.OperationID)
		_, _ = d.api().Roles.ContinueChange(ctx, d.in.database(), d.roleID(), c.OperationID, disconnect)
	}
	return c, err
}

// revealed takes the password of a role.
func revealed(_ context.Context, d *doing, a answer) {
	d.told(d.in, d.on.roleName(), a.text("username"), a.text("password"))
}

// changed takes that a rotation was accepted: once it is completed, the old password is refused.
func changed(_ context.Context, d *doing, a answer) {
	if l := d.in.login(d.on.roleName()); a.text("status") == pending {
		l.Changing()
	} else {
		l.Changed()
	}
}

// changing takes that it is not known whether a change will come.
func changing(d *doing) { d.in.login(d.on.roleName()).Changing() }

// closed takes that a role lets nobody in any more, once that is completed.
func closed(_ context.Context, d *doing, a answer) {
	if l := d.in.login(d.on.roleName()); a.text("status") == pending {
		l.Changing()
	} else {
		l.Close()
	}
}

// rotated takes the rotation of a login that came with the database.
func (d *doing) rotated(name string, a answer) {
	l := d.on.login(name)
	switch password := a.text("password"); {
	case password != "":
		d.told(d.on, name, l.username, password)
	case a.text("status") == pending:
		l.Changing()
	default:
		l.Changed()
	}
}

// grantConnect does what an owner has to before a role of a single-login database can be admitted.
func (d *doing) grantConnect(ctx context.Context, username string) error {
	l := d.on.login(string(database.OwnerLogin))
	db, err := d.connect(d.on, l.username, l.Known())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "GRANT CONNECT ON DATABASE "+pq.QuoteIdentifier(d.on.name)+" TO "+pq.QuoteIdentifier(username))
	return err
}
