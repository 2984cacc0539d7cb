package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// required marks flags without which a command is not understood.
func required(cmd *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined: a mistake in this package
		}
	}
	return cmd
}

const limitUsage = "most entries to list; 0 lists all"

// finder finds what the text of a flag means.
type finder[T any] func(ctx context.Context, o *operator.Operator, flag, text string) (T, error)

// find finds a thing by its ID or, where such things have names, by its name.
func find[T ~string](ctx context.Context, o *operator.Operator, flag, text string) (T, error) {
	switch any(T("")).(type) {
	case id.AccountID:
		return cast[T](o.AccountNamed(ctx, flag, text))
	case id.DatabaseID:
		return cast[T](o.DatabaseNamed(ctx, flag, text))
	case id.ServerID:
		return cast[T](o.ServerNamed(ctx, flag, text))
	case id.NamespaceID:
		return cast[T](o.NamespaceNamed(ctx, flag, text))
	case id.KeyID:
		return cast[T](account.ParseKeyID(flag, text))
	}
	return parse[T](flag, text)
}

func cast[T, F ~string](found F, err error) (T, error) { return T(found), err }

// findAny is find for a flag that may be left out.
func findAny[T ~string](ctx context.Context, o *operator.Operator, flag, text string) (T, error) {
	if text == "" {
		return "", nil
	}
	return find[T](ctx, o, flag, text)
}

// called says in a flag's help how a thing is named.
func called[T ~string]() string {
	switch any(T("")).(type) {
	case id.AccountID:
		return "account: its ID, or its owner's email address or name"
	case id.DatabaseID:
		return "database: its ID or name"
	case id.ServerID:
		return "server: its ID or name"
	case id.NamespaceID:
		return "CI namespace: its ID or name"
	case id.KeyID:
		return "key: its ID or prefix"
	}
	return ""
}

// onID makes a command one about a single thing, which a flag names.
func onID[T ~string](
	m *metadata, cmd *cobra.Command, flag string, do func(context.Context, *operator.Operator, T) (output, error),
) *cobra.Command {
	return onFound(m, cmd, flag, find[T], do)
}

func onFound[T ~string](
	m *metadata, cmd *cobra.Command, flag string, search finder[T], do func(context.Context, *operator.Operator, T) (output, error),
) *cobra.Command {
	var text string
	usage := called[T]()
	if usage == "" {
		usage = flag + " ID"
	}
	cmd.Flags().StringVar(&text, flag, "", usage)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			thing, err := search(ctx, o, flag, text)
			if err != nil {
				return nil, err
			}
			return do(ctx, o, thing)
		})
	}
	return required(cmd, flag)
}

// parse is for things that have IDs alone.
func parse[T ~string](flag, text string) (T, error) {
	v, err := id.Parse[T](text)
	if err != nil {
		return "", fault.Invalid(flag, "must be a lowercase UUID")
	}
	return v, nil
}

// pastDatabase finds a database whose record may be gone.
func pastDatabase(ctx context.Context, o *operator.Operator, flag, text string) (id.DatabaseID, error) {
	return o.PastDatabaseNamed(ctx, flag, text)
}
