package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Logins are the calls about the logins that were created with a database.
type Logins struct{ c *Client }

const loginsPath = "/databases/%s/managed-roles"

// List reads the logins of a database.
func (l Logins) List(ctx context.Context, of id.DatabaseID, opts ...Option) ([]wire.Login, error) {
	answer, err := ask[wire.Roles[wire.Login]](ctx, l.c, get(loginsPath, string(of)), opts)
	return answer.Roles, err
}

// Reveal reveals the password of the login runtime or readonly.
func (l Logins) Reveal(ctx context.Context, of id.DatabaseID, login database.Login, opts ...Option) (wire.RevealedLogin, error) {
	reveal := post(nil, loginsPath+"/%s/credentials", string(of), string(login)).mayRepeat()
	return ask[wire.RevealedLogin](ctx, l.c, reveal, opts)
}

// Rotate rotates the password of a login. The owner's new password is in this answer only.
func (l Logins) Rotate(
	ctx context.Context, of id.DatabaseID, login database.Login, b wire.Disconnect, opts ...Option,
) (wire.LoginRotation, error) {
	return ask[wire.LoginRotation](ctx, l.c, post(b, loginsPath+"/%s/rotate", string(of), string(login)).withKey(), opts)
}
