package main

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// client is a customer's program with one key.
type client struct{ *apiclient.Client }

func newClient(url, key string) (client, error) {
	c, err := stack.Client(url, key, nil)
	return client{c}, err
}

// create sends no Idempotency-Key, which would be one more thing to record.
func (c client) create(ctx context.Context, name string) (wire.CreatedDatabase, error) {
	return c.Databases.Create(ctx, wire.CreateDatabase{Name: name, DisplayName: name}, apiclient.IdempotencyKey(""))
}

const roleLimit = 40

func (c client) createRole(ctx context.Context, of id.DatabaseID, name string, limit int) (wire.Role, error) {
	return c.Roles.Create(ctx, of, wire.CreateRole{
		DisplayName: name, AccessProfile: role.ReadOnly, ConnectionLimit: limit,
	})
}

// removeRole takes back all that createRole has made.
func (c client) removeRole(ctx context.Context, of id.DatabaseID, made id.RoleID) error {
	removal, err := c.Roles.Delete(ctx, of, made, wire.DeleteRole{Confirm: true})
	if err == nil && removal.Status != string(role.Removed) {
		err = fmt.Errorf("the removal is %s", removal.Status)
	}
	return err
}

// rotateRole fails also where the rotation is still pending: then nothing was measured.
func (c client) rotateRole(ctx context.Context, of id.DatabaseID, made id.RoleID) error {
	change, err := c.Roles.Change(ctx, of, made, wire.ChangeRole{Kind: role.Rotation, ConfirmDisconnect: true})
	if err == nil && change.Status != role.Completed {
		err = fmt.Errorf("the rotation is %s", change.Status)
	}
	return err
}

// customer is a login of a database.
type customer struct{ Database, Username, Password string }

func (c client) revealRole(ctx context.Context, of id.DatabaseID, made id.RoleID) (customer, error) {
	r, err := c.Roles.Reveal(ctx, of, made)
	return customer{r.Database, r.Username, r.Password}, err
}

// revealLogin is about a login that came with the database.
func (c client) revealLogin(ctx context.Context, of id.DatabaseID, login database.Login) (customer, error) {
	r, err := c.Logins.Reveal(ctx, of, login)
	return customer{r.Database, r.Username, r.Password}, err
}
