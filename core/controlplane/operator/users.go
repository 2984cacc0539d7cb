package operator

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/ports"
)

// Invited is a user with the account that the user owns, and a link to choose a password.
type Invited struct {
	Account account.Account
	User    account.User
	Made    bool // there was neither before
	Link    people.Link
}

// InviteUser makes a user and an account, where the address is nobody's, and a link for the user, which is sent by mail where
// send says so and the installation sends any. A user and an account that are there stay as they are. Errors as of CreateAccount.
func (o *Operator) InviteUser(ctx context.Context, n NewAccount, send bool) (i Invited, err error) {
	if n.Email, err = account.ValidateEmail(n.Email); err != nil {
		return i, err
	}
	err = o.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if i.User, err = tx.Accounts().UserByEmail(ctx, n.Email); err == nil {
			i.Account, err = tx.Accounts().OfOwner(ctx, i.User.ID)
		}
		return err
	})
	if errors.Is(err, ports.ErrNoRow) {
		i.Made = true
		i.Account, i.User, err = o.CreateAccount(ctx, n)
	}
	if err != nil {
		return Invited{}, err
	}
	link := o.LinkUser
	if send {
		link = o.WelcomeUser
	}
	i.User.PasswordHash = ""
	i.Link, err = link(ctx, n.Email)
	return i, err
}
