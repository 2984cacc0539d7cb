package abuse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// customer calls the API with one key, from one address of the loopback.
type customer struct {
	*world
	*apiclient.Client
	account string // its ID
	through *http.Client
}

// newCustomer makes an account whose requests come from an address.
func (w *world) newCustomer(t testing.TB, name, from string) *customer {
	t.Helper()
	const databases = 5000
	a := must(w.NewAccount(soon(t), name, "business", databases))(t)
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	c := &customer{world: w, account: a.ID, through: &http.Client{Transport: transport}}
	c.Client = c.with(t, a.Key)
	return c
}

// with is a client with another key, from the same address.
func (c *customer) with(t testing.TB, key string) *apiclient.Client {
	t.Helper()
	return must(stack.Client(c.api.URL, key, c.through))(t)
}

func (c *customer) create(ctx context.Context, name string) (wire.CreatedDatabase, error) {
	return c.Databases.Create(ctx, wire.CreateDatabase{Name: name, DisplayName: name})
}

func (c *customer) createRole(ctx context.Context, database id.DatabaseID, name string) (wire.RevealedRole, error) {
	made, err := c.Roles.Create(ctx, database, wire.CreateRole{
		DisplayName: name, AccessProfile: role.ReadWrite, ConnectionLimit: 10,
	})
	if err != nil {
		return wire.RevealedRole{}, err
	}
	return c.Roles.Reveal(ctx, database, made.RoleID)
}

// rotate fails also where the rotation is still pending.
func (c *customer) rotate(ctx context.Context, database id.DatabaseID, of id.RoleID) error {
	change, err := c.Roles.Change(ctx, database, of, wire.ChangeRole{Kind: role.Rotation, ConfirmDisconnect: true})
	if err == nil && change.Status != role.Completed {
		err = fmt.Errorf("the rotation is %s", change.Status)
	}
	return err
}

// backUp follows a backup to its end, and returns the file's name.
func (c *customer) backUp(ctx context.Context, database id.DatabaseID) (backup.Filename, error) {
	done, err := stack.BackUp(ctx, c.Client, database)
	return backup.Filename(done.Filename), err
}

func (c *customer) download(ctx context.Context, database id.DatabaseID, file backup.Filename) error {
	d, err := c.Backups.Download(ctx, database, file)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, d)
	return errors.Join(err, d.Close())
}
