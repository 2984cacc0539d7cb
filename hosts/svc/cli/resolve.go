package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// databaseNamed finds a database by its name or its ID. An ID is not looked up: the call that follows says what is wrong with it.
func (a *app) databaseNamed(ctx context.Context, name string) (id.DatabaseID, error) {
	if of, is := idOf[id.DatabaseID](name); is {
		return of, nil
	}
	found, err := a.findDatabase(ctx, name)
	return found.ID, err
}

// findDatabase reads a database by its name or its ID.
func (a *app) findDatabase(ctx context.Context, name string) (wire.Database, error) {
	c, err := a.api()
	if err != nil {
		return wire.Database{}, err
	}
	if of, is := idOf[id.DatabaseID](name); is {
		return c.Databases.Get(ctx, of)
	}
	return named(c.Databases.All(ctx), name, "database", func(d wire.Database) string { return d.Name })
}

// named finds the one entry of a list that has a name. Names of databases are unique on their server, and a key can see those of
// several.
func named[T any](list iter.Seq2[T, error], name string, what kind, nameOf func(T) string) (found T, err error) {
	count := 0
	for entry, err := range list {
		if err != nil {
			return found, err
		}
		if nameOf(entry) == name {
			found = entry
			count++
		}
	}
	switch count {
	case 0:
		return found, notFound{what, name}
	case 1:
		return found, nil
	}
	err = fmt.Errorf("%q is the name of %d things of the kind %s that this key can see", name, count, what)
	return found, next(err, "name it by its ID, which the list with --json has")
}

// sequence is a list that was read at once, or why it could not be.
func sequence[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, entry := range list {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// collected reads a whole list.
func collected[T any](list iter.Seq2[T, error]) (entries []T, err error) {
	for entry, err := range list {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// idOf reads an ID, which may be written in capitals.
func idOf[T ~string](text string) (of T, is bool) {
	of, err := id.Parse[T](strings.ToLower(text))
	return of, err == nil
}

// wantID reads an ID that has to be one; what names the argument.
func wantID[T ~string](text, what string) (T, error) {
	of, is := idOf[T](text)
	if !is {
		return "", usage("%s must be a UUID, and %q is none", what, text)
	}
	return of, nil
}

// onDatabase runs a command whose first argument is a database.
func (a *app) onDatabase(
	do func(context.Context, *apiclient.Client, id.DatabaseID, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
			of, err := a.databaseNamed(ctx, args[0])
			if err != nil {
				return err
			}
			return do(ctx, c, of, args[1:])
		})
	}
}

// kind is what a name is the name of.
type kind string

// notFound is a name that the API's list does not have.
type notFound struct {
	what kind
	name string
}

// code is that of the API's refusal of an ID of the kind; empty for none.
func (e notFound) code() fault.Code {
	switch e.what {
	case "database":
		return fault.DatabaseNotFound
	case "deleted database":
		return fault.DeletionBackupNotAvailable
	case "backup":
		return fault.BackupNotFound
	case "entry":
		return fault.AllowlistEntryNotFound
	case "role":
		return fault.RoleNotFound
	case "member":
		return fault.MemberNotFound
	case "invitation of":
		return fault.InvitationNotFound
	case "webhook":
		return fault.WebhookNotFound
	}
	return ""
}

func (e notFound) Error() string {
	return "there is no " + string(e.what) + " " + strconv.Quote(e.name) + " that this key can see"
}

// withAPI runs a command's work with the client and the command's context, which ends with --timeout.
func (a *app) withAPI(ctx context.Context, do func(context.Context, *apiclient.Client) error) error {
	c, err := a.api()
	if err != nil {
		return err
	}
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	return a.scoped(do(ctx, c))
}

// scoped adds to the refusal of a key of the wrong class which one is needed.
func (a *app) scoped(err error) error {
	var refused *apiclient.Error
	denied := errors.As(err, &refused) && refused.Code == fault.KeyScopeDenied
	if !denied || !strings.HasPrefix(a.target.Key, account.CIKeyPrefix+"_") {
		return err
	}
	return next(err, "a preview CI key is for \"svc previews\" alone: this needs a key of the account, which begins with %s_",
		account.KeyPrefix)
}
