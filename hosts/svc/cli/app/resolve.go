package app

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
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// DatabaseNamed finds a database by its name or its ID. An ID is not looked up: the call that follows says what is wrong with it.
func (a *App) DatabaseNamed(ctx context.Context, name string) (id.DatabaseID, error) {
	if of, is := IDOf[id.DatabaseID](name); is {
		return of, nil
	}
	found, err := a.FindDatabase(ctx, name)
	return found.ID, err
}

// FindDatabase reads a database by its name or its ID.
func (a *App) FindDatabase(ctx context.Context, name string) (wire.Database, error) {
	c, err := a.api()
	if err != nil {
		return wire.Database{}, err
	}
	if of, is := IDOf[id.DatabaseID](name); is {
		return c.Databases.Get(ctx, of)
	}
	return Named(c.Databases.List().All(ctx), name, "database", func(d wire.Database) string { return d.Name })
}

// Named finds the one entry of a list that has a name. Names of databases are unique on their server, and a key can see those of
// several.
func Named[T any](list iter.Seq2[T, error], name string, what kind, nameOf func(T) string) (found T, err error) {
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
		return found, NotFound{what, name}
	case 1:
		return found, nil
	}
	err = fmt.Errorf("%q is the name of %d things of the kind %s that this key can see", name, count, what)
	return found, Next(err, "name it by its ID, which the list with --json has")
}

// Sequence is a list that was read at once, or why it could not be.
func Sequence[T any](list []T, err error) iter.Seq2[T, error] {
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

// Collected reads a whole list.
func Collected[T any](list iter.Seq2[T, error]) (entries []T, err error) {
	for entry, err := range list {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// IDOf reads an ID, which may be written in capitals.
func IDOf[T ~string](text string) (of T, is bool) {
	of, err := id.Parse[T](ascii.Lower(text))
	return of, err == nil
}

// WantID reads an ID that has to be one; what names the argument.
func WantID[T ~string](text, what string) (T, error) {
	of, is := IDOf[T](text)
	if !is {
		return "", Usage("%s must be a UUID, and %q is none", what, text)
	}
	return of, nil
}

// OnDatabase runs a command whose first argument is a database.
func (a *App) OnDatabase(
	do func(context.Context, *apiclient.Client, id.DatabaseID, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
			of, err := a.DatabaseNamed(ctx, args[0])
			if err != nil {
				return err
			}
			return do(ctx, c, of, args[1:])
		})
	}
}

// kind is what a name is the name of.
type kind string

// NotFound is a name that the API's list does not have.
type NotFound struct {
	What kind
	Name string
}

// code is that of the API's refusal of an ID of the kind; empty for none.
func (e NotFound) code() fault.Code {
	switch e.What {
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
	case "CI namespace":
		return fault.NamespaceNotFound
	}
	return ""
}

func (e NotFound) Error() string {
	return "there is no " + string(e.What) + " " + strconv.Quote(e.Name) + " that this key can see"
}

// WithAPI runs a command's work with the client and the command's context, which ends with --timeout.
func (a *App) WithAPI(ctx context.Context, do func(context.Context, *apiclient.Client) error) error {
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
func (a *App) scoped(err error) error {
	var refused *apiclient.Error
	denied := errors.As(err, &refused) && refused.Code == fault.KeyScopeDenied
	if !denied || !strings.HasPrefix(a.Target.Key, account.CIKeyPrefix+"_") {
		return err
	}
	return Next(err, "a preview CI key is for \"svc previews\" alone: this needs a key of the account, which begins with %s_",
		account.KeyPrefix)
}
