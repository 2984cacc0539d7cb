package connect

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
	"github.com/pgherd/pgherd/hosts/svc/cli/roles"
)

// connecting are the flags of a command that connects to a database.
type connecting struct {
	role, caFile string
	transaction  bool
}

func (o *connecting) add(a *app.App, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.role, "role", string(database.OwnerLogin),
		"connect as owner, runtime, readonly, or an additional role: its display name, username or ID")
	f.BoolVar(&o.transaction, "transaction", false, "use the entry that is pooled by transaction")
	f.StringVar(&o.caFile, "db-ca-file", "",
		"trust the certificate authorities of this file (PGSSLROOTCERT); without it those of --ca-file, or the system's")
	if err := cmd.RegisterFlagCompletionFunc("role", completeLogin(a)); err != nil {
		panic(err) // the flag stands above
	}
}

// onConnections says what a command that connects trusts.
const onConnections = `The connection goes through the pooler, over TLS, and the certificate is verified: against the file of
--db-ca-file or PGSSLROOTCERT, else that of --ca-file or the profile, else the authorities that this machine trusts. A role's
password is shown by the API, which keeps a record of that. The owner's is not: "svc databases create" has printed it, and
"svc managed logins-rotate" replaces it.`

// connection is how to connect to a database with a login.
type connection struct {
	host, name, username string
	port                 int
	roots                string // the file with the certificate authorities, or what libpq calls the system's
	password             string // empty where it is not known
}

// find looks a database and a login up. The login's password is read only where it is wanted, and where the API shows it.
func (o *connecting) find(ctx context.Context, a *app.App, c *apiclient.Client, name string, secret bool) (connection, error) {
	roots, err := rootCertificates(a, o.caFile)
	if err != nil {
		return connection{}, err
	}
	d, err := a.FindDatabase(ctx, name)
	if err != nil {
		return connection{}, err
	}
	to := connection{host: d.Host, port: d.Port, name: d.Database, username: d.Username, roots: roots}
	if o.transaction {
		to.name += ".transaction"
	}
	if o.role == string(database.OwnerLogin) {
		return to, nil
	}
	l, err := loginNamed(ctx, c, d.ID, o.role)
	if err != nil {
		return connection{}, err
	}
	to.username = l.username
	if secret && l.reveal != nil {
		to.password, err = l.reveal(ctx)
	}
	return to, err
}

// login is a login of a database; reveal reads its password, and is nil for the owner's.
type login struct {
	username string
	reveal   func(context.Context) (string, error)
}

// loginNamed finds a login by its name, or an additional role by its ID, username or display name.
func loginNamed(ctx context.Context, c *apiclient.Client, of id.DatabaseID, name string) (login, error) {
	own, err := c.Logins.List(ctx, of)
	if err != nil {
		return login{}, err
	}
	for _, l := range own {
		if name != string(l.Login) && name != l.Username {
			continue
		}
		if l.Login == database.OwnerLogin {
			return login{username: l.Username}, nil
		}
		return login{l.Username, func(ctx context.Context) (string, error) {
			shown, err := c.Logins.Reveal(ctx, of, l.Login)
			return shown.Password, err
		}}, nil
	}
	m, additional, err := additionalOf(ctx, c, of, own)
	if err != nil {
		return login{}, err
	}
	r, err := roles.RoleIn(additional, name)
	if err != nil {
		return login{}, err
	}
	return login{r.Username, func(ctx context.Context) (string, error) {
		shown, err := m.Calls(c).Reveal(ctx, of, r.RoleID)
		return shown.Password, err
	}}, nil
}

// additionalOf lists the additional roles of a database with these logins. Where it can have none, there are none.
func additionalOf(
	ctx context.Context, c *apiclient.Client, of id.DatabaseID, own []wire.Login,
) (m roles.RoleModel, list []wire.ListedRole, err error) {
	m = roles.CustomRoles
	if len(own) == len(database.SingleLogin.Logins()) {
		m = roles.SingleLoginRoles
	}
	list, err = m.Calls(c).List(ctx, of, false)
	if roles.RefusedWith(err, fault.FeatureNotAvailable) {
		err = nil
	}
	return m, list, err
}

func completeLogin(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
			of, err := a.DatabaseNamed(ctx, args[0])
			if err != nil {
				return nil, err
			}
			own, err := c.Logins.List(ctx, of)
			if err != nil {
				return nil, err
			}
			for _, l := range own {
				names = append(names, string(l.Login))
			}
			_, additional, err := additionalOf(ctx, c, of, own)
			for _, r := range additional {
				names = append(names, app.Offered(r.DisplayName, r.Username, r.Username))
			}
			return names, err
		})
	}
}

// bundles are where systems keep the certificate authorities that they trust, in one file.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Arch Linux, Alpine Linux
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora and those that come from it
	"/etc/ssl/ca-bundle.pem",             // openSUSE
	"/etc/ssl/cert.pem",                  // macOS
}

// rootCertificates is the file of the authorities that the database's certificate is checked against. The name "system", which is
// no file, is understood by libpq from version 16 on, but hardly by other clients.
func rootCertificates(a *app.App, given string) (string, error) {
	file := app.First(given, os.Getenv("PGSSLROOTCERT"), a.Target.CAFile)
	if file == "" {
		for _, bundle := range bundles {
			if _, err := os.Stat(bundle); err == nil {
				return bundle, nil
			}
		}
		file = "system"
	}
	if file == "system" {
		return file, nil
	}
	if _, err := os.Stat(file); err != nil {
		return "", app.Usage("--db-ca-file or PGSSLROOTCERT: %w", err)
	}
	return filepath.Abs(file)
}

// variable is one of the environment.
type variable struct{ name, value string }

// variables tell clients of PostgreSQL how to connect, without the password.
func (to connection) variables() []variable {
	return []variable{
		{"PGHOST", to.host},
		{"PGPORT", strconv.Itoa(to.port)},
		{"PGDATABASE", to.name},
		{"PGUSER", to.username},
		{"PGSSLMODE", "verify-full"},
		{"PGSSLROOTCERT", to.roots},
	}
}

// url is a connection string without the password.
func (to connection) url() string {
	// libpq takes a + for itself.
	roots := strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(to.roots))
	return (&url.URL{
		Scheme: "postgresql", User: url.User(to.username), Host: net.JoinHostPort(to.host, strconv.Itoa(to.port)), Path: "/" + to.name,
		RawQuery: "sslmode=verify-full&sslrootcert=" + roots,
	}).String()
}
