// Package roles has the commands of svc about the logins and additional roles of a database.
package roles

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/text/unicode/norm"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// RoleModel is what differs between the commands for the additional roles of managed databases and those for the roles of
// databases with a single login.
type RoleModel struct {
	role.Model
	group  []string // the command that the others are below
	prefix string   // of their names
	Calls  func(*apiclient.Client) apiclient.RoleCalls
	remove func(context.Context, *apiclient.Client, id.DatabaseID, id.RoleID) (wire.RoleRemoval, error)
}

// words are those of a command about a role.
func (m RoleModel) words(command string, args ...string) []string {
	words := append([]string{"svc"}, m.group...)
	return append(append(words, m.prefix+command), args...)
}

// line is the line of another command about a role of the same service.
func (m RoleModel) line(a *app.App, command string, args ...string) string {
	return a.Onward(m.words(command, args...)...)
}

// onRole runs a command whose first two arguments are a database and a role.
func (m RoleModel) onRole(
	a *app.App, do func(context.Context, *apiclient.Client, id.DatabaseID, id.RoleID) error,
) func(*cobra.Command, []string) error {
	return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, rest []string) error {
		one, err := m.roleNamed(ctx, c, of, rest[0])
		if err != nil {
			return err
		}
		return do(ctx, c, of, one)
	})
}

// roleNamed finds a role by its username, its display name or its ID. An ID is not looked up: the call that follows says what is
// wrong with it.
func (m RoleModel) roleNamed(ctx context.Context, c *apiclient.Client, of id.DatabaseID, name string) (id.RoleID, error) {
	if one, is := app.IDOf[id.RoleID](name); is {
		return one, nil
	}
	list, err := m.Calls(c).List(ctx, of, true)
	if err != nil {
		return "", err
	}
	found, err := RoleIn(list, name)
	return found.RoleID, err
}

// RoleIn finds a role of a list by its username, its display name or its ID. The service has display names in Unicode's form
// NFC, whichever one a keyboard makes.
func RoleIn(list []wire.ListedRole, name string) (found wire.ListedRole, err error) {
	label := role.NameKey(norm.NFC.String(name))
	for _, r := range list {
		switch {
		case r.Username == name, ascii.Equal(string(r.RoleID), name):
			return r, nil
		case role.NameKey(r.DisplayName) == label:
			found = r
		}
	}
	if found.RoleID == "" {
		return found, app.NotFound{What: "role", Name: name}
	}
	return found, nil
}

// complete offers the names of databases for the first argument, and those of the database's roles for the second.
func (m RoleModel) complete(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return m.completeOf(a, cmd, args[0], func(r wire.ListedRole) string {
				return app.Offered(r.DisplayName, r.Username, string(r.Status)+", "+string(r.AccessProfile))
			})
		}
		return a.CompleteDatabase(cmd, args, typed)
	}
}

// completeOf offers something of each role of a database; nothing of those for which it is empty.
func (m RoleModel) completeOf(
	a *app.App, cmd *cobra.Command, database string, something func(wire.ListedRole) string,
) ([]string, cobra.ShellCompDirective) {
	return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
		of, err := a.DatabaseNamed(ctx, database)
		if err != nil {
			return nil, err
		}
		list, err := m.Calls(c).List(ctx, of, true)
		for _, r := range list {
			if text := something(r); text != "" {
				names = append(names, text)
			}
		}
		return names, err
	})
}

func roleList(a *app.App, m RoleModel) *cobra.Command {
	var revoked bool
	cmd := &cobra.Command{
		Use: m.prefix + "list DATABASE", Short: "List the additional roles of a database", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			roles, err := m.Calls(c).List(ctx, of, revoked)
			if err != nil {
				return err
			}
			return app.ShowList(a, roles, "No additional roles.", func(r wire.ListedRole) []app.Field {
				return []app.Field{
					{"NAME", r.DisplayName}, {"STATUS", r.Status}, {"ACCESS", r.AccessProfile}, {"LIMIT", r.ConnectionLimit},
					{"PASSWORD ENDS", r.CredentialExpiresAt}, {"PENDING CHANGE", r.OperationID}, {"USERNAME", r.Username},
				}
			})
		}),
	}
	cmd.Flags().BoolVar(&revoked, "include-revoked", false, "list revoked roles, too")
	return cmd
}

func roleCreate(a *app.App, m RoleModel, long string) *cobra.Command {
	var profile string
	var limit int
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: m.prefix + "create DATABASE NAME", Short: "Make an additional role", Long: long, Args: cobra.ExactArgs(2),
		Example: "  " + app.Line(m.words("create", "shop", "Reports")...) +
			" --access-profile read_only --connection-limit 5",
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := m.choices(args[1], profile, limit)
			if err != nil {
				return err
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				made, err := m.Calls(c).Create(ctx, of, b, opt)
				if err != nil {
					return m.afterSetup(a, err, app.Again(cmd, args), args)
				}
				m.sayNext(a, made.Status, args)
				return a.ShowRecord(made, roleFields(made)...)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&profile, "access-profile", "", "read_only, read_write, or custom for what the owner grants")
	f.IntVar(&limit, "connection-limit", 0, "how many connections to the server the role can have at once")
	key.Add(cmd)
	return cmd
}

// choices checks what a role is made with.
func (m RoleModel) choices(name, profile string, limit int) (b wire.CreateRole, err error) {
	if b.DisplayName, err = role.ValidateDisplayName(name); err != nil {
		return b, app.Usage("NAME: %w", err)
	}
	if b.AccessProfile, err = role.ParseAccessProfile(profile); err != nil {
		return b, app.Usage("--access-profile: %w", err)
	}
	b.ConnectionLimit = limit
	_, err = role.Request{DisplayName: b.DisplayName, AccessProfile: b.AccessProfile, ConnectionLimit: limit}.Check(m.Model)
	if err != nil {
		return b, app.Usage("--connection-limit: %w", err)
	}
	return b, nil
}

func roleFields(r wire.Role) []app.Field {
	return []app.Field{
		{"Name", r.DisplayName},
		{"ID", r.RoleID},
		{"Status", r.Status},
		{"Access profile", r.AccessProfile},
		{"Connection limit", r.ConnectionLimit},
		{"Username", r.Username},
		{"Password generation", r.CredentialGeneration},
		{"Password ends", r.CredentialExpiresAt},
	}
}

func setupFields(r wire.RoleSetup) []app.Field {
	return []app.Field{
		{"Name", r.DisplayName},
		{"ID", r.RoleID},
		{"Status", r.Status},
		{"Access profile", r.AccessProfile},
		{"Username", r.Username},
	}
}

// sayNext says which command a role of this status waits for.
func (m RoleModel) sayNext(a *app.App, status role.Status, args []string) {
	if a.WantsJSON() {
		return
	}
	switch status { //nolint:exhaustive // roles of the others wait for nothing
	case role.Reserved:
		a.Note("create it on the server with: %s", m.line(a, "prepare", args...))
	case role.SQLReady:
		a.Note("let it log in with: %s", m.line(a, "admit", args...))
	case role.Ready:
		a.Note("see its password with: %s", m.line(a, "credentials", args...))
	}
}

// afterSetup adds to the error of a step that makes a role how to go on; repeat is the command line of the step.
func (m RoleModel) afterSetup(a *app.App, err error, repeat string, args []string) error {
	switch {
	case RefusedWith(err, fault.ConnectGrantRequired):
		return app.Next(err, "run the statement above as the database's owner, then repeat: %s", repeat)
	case m.OwnerConnects && RefusedWith(err, fault.AgentError):
		return app.Next(err, "see how far it has come with: %s", m.line(a, "reconcile", args...))
	}
	return a.MayBeDone(err, repeat)
}

// RefusedWith reports whether an error is the API's refusal with a code.
func RefusedWith(err error, code fault.Code) bool {
	var e *apiclient.Error
	return errors.As(err, &e) && e.Code == code
}

func roleAdmit(a *app.App, m RoleModel, long string) *cobra.Command {
	return &cobra.Command{
		Use: m.prefix + "admit DATABASE ROLE", Short: "Let a prepared role log in", Long: long, Args: cobra.ExactArgs(2),
		ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				admitted, err := m.Calls(c).Admit(ctx, of, one)
				if err != nil {
					return m.afterSetup(a, err, app.Again(cmd, args), args)
				}
				m.sayNext(a, admitted.Status, args)
				return a.ShowRecord(admitted, setupFields(admitted)...)
			})(cmd, args)
		},
	}
}

func roleCredentials(a *app.App, m RoleModel) *cobra.Command {
	return &cobra.Command{
		Use: m.prefix + "credentials DATABASE ROLE", Short: "Show how a role logs in, with its password", Args: cobra.ExactArgs(2),
		Long:              "Show how a role logs in, with its password. The activity log of the database records that.",
		ValidArgsFunction: m.complete(a),
		RunE: m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
			r, err := m.Calls(c).Reveal(ctx, of, one)
			if err != nil {
				return err
			}
			fields := append(credentialFields(r.Username, r.Credential), app.Field{"Password ends", r.CredentialExpiresAt})
			return a.ShowRecord(r, fields...)
		}),
	}
}

// credentialFields are how to log in.
func credentialFields(username string, c wire.Credential) []app.Field {
	tls := "not required"
	if c.TLSRequired {
		tls = "required"
	}
	return []app.Field{
		{"Host", c.Host},
		{"Port", c.Port},
		{"Database", c.Database},
		{"Username", username},
		{"Password", c.Password},
		{"TLS", tls},
	}
}
