// Package auth has the commands of svc about logging in.
package auth

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/internal/profile"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc auth".
func Command(a *app.App) *cobra.Command {
	return app.Group("auth", "Log in to a service, and out",
		authLogin(a),
		authStatus(a),
		authLogout(a),
		authCI(a),
	)
}

// defaultProfile is the profile of who names none.
const defaultProfile = "default"

func authLogin(a *app.App) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "login", Short: "Check an API key and store it", Args: cobra.NoArgs,
		Long: `Check an API key and store it, with the service's address, in a profile of the configuration, which only you can read.

"--api-key -" reads the key from standard input, so that it stands in no process list and no shell history; on a terminal, a key
that is not given is asked for without showing it. The profile is used from then on; others are used with --profile.`,
		Example: `  svc auth login --url https://pgherd.example.com --api-key - < key.txt
  svc auth login --profile staging --url https://staging.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error { return logIn(cmd.Context(), a, key) },
	}
	cmd.Flags().StringVar(&key, "api-key", "", `the key, or "-" to read it from standard input`)
	return cmd
}

func logIn(ctx context.Context, a *app.App, key string) error {
	stored, err := profile.Load()
	if err != nil {
		return err
	}
	name := app.First(a.Profile, os.Getenv("SVC_PROFILE"), defaultProfile)
	t, err := a.Service(stored.Profiles[name], name)
	if err != nil {
		return err
	}
	if t.URL == "" {
		return app.Usage("--url must say where the service is, as in https://pgherd.example.com")
	}
	if t.Key, err = readKey(a, key, t.URL); err != nil {
		return err
	}
	p := t.Profile // to be stored
	ca := a.CASetting(t.CAFile)
	if t.CAFile = ca.Value; ca.From == "--ca-file" || t.URLFrom == "SVC_BASE_URL" { // SVC_CA_FILE belongs to SVC_BASE_URL.
		if p.CAFile, err = absolute(ca.Value); err != nil {
			return err
		}
	}
	if a.Client, err = a.ClientOf(t); err != nil {
		return err
	}
	what, err := tryKey(ctx, a)
	if err != nil {
		return err
	}
	err = profile.Update(ctx, func(f *profile.File) {
		f.Profiles[name] = p
		f.Current = name
	})
	if err != nil {
		return err
	}
	return a.Say(status(app.Target{Profile: p, Name: name}, what), "Logged in to %s as profile %s: %s.", p.URL, name, what)
}

// absolute is a path that holds in every folder; none stays none.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// readKey reads a key for a service from where the flag says.
func readKey(a *app.App, given, service string) (string, error) {
	f, is := a.In.(*os.File)
	typed := is && term.IsTerminal(int(f.Fd()))
	switch {
	case given != "" && given != "-":
	case given == "-" && !typed:
		text, err := a.UntilInterrupted(func() (string, error) {
			text, err := io.ReadAll(io.LimitReader(a.In, 4096))
			return string(text), err
		})
		if err != nil {
			return "", err
		}
		given = text
	case !typed:
		return "", app.Usage(`--api-key is needed; "--api-key -" reads it from standard input`)
	default:
		var err error
		if given, err = a.AskSecret("API key for "+service+": ", int(f.Fd())); err != nil {
			return "", err
		}
	}
	given = strings.TrimSpace(given)
	if _, err := account.ParseKey(given); err != nil {
		return "", app.Usage("--api-key: what was given is no API key, or not all of one")
	}
	return given, nil
}

// tryKey asks the API whether it knows the key, and says what kind it is.
func tryKey(ctx context.Context, a *app.App) (what string, err error) {
	err = a.WithAPI(ctx, func(ctx context.Context, c *apiclient.Client) error {
		page, err := c.Databases.List().Page(ctx, apiclient.Page{Limit: 1})
		var refused *apiclient.Error
		if errors.As(err, &refused) && refused.Code == fault.KeyScopeDenied {
			what = "a key for previews"
			return nil
		}
		what = "the key sees no database yet"
		if len(page.Data) > 0 {
			what = "the key is valid"
		}
		return err
	})
	return what, err
}

// loggedIn is what is said of a profile: all but the secret of its key.
type loggedIn struct {
	Profile string `json:"profile"`
	URL     string `json:"url"`
	URLFrom string `json:"urlFrom,omitzero"`
	Key     string `json:"keyPrefix"`
	KeyFrom string `json:"keyFrom,omitzero"`
	CAFile  string `json:"caFile,omitzero"`
	Status  string `json:"status"`
}

func status(t app.Target, what string) loggedIn {
	return loggedIn{t.Name, t.URL, t.URLFrom, keyPrefix(t.Key), t.KeyFrom, t.CAFile, what}
}

// keyPrefix is the part of a key that may be shown; nothing of what is no key.
func keyPrefix(text string) string {
	key, err := account.ParseKey(text)
	if err != nil {
		return "?"
	}
	return account.Key{Kind: key.Kind, ID: key.ID}.Prefix()
}

func authStatus(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say which service and key are used, who says so, and whether the key is valid", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.FindTarget()
			if err != nil {
				return err
			}
			what, err := tryKey(cmd.Context(), a)
			if err != nil {
				return err
			}
			s := status(t, what)
			return a.ShowRecord(s, app.Field{"Profile", s.Profile}, app.Field{"URL", s.URL}, app.Field{"URL from", s.URLFrom},
				app.Field{"Key", s.Key + "..."}, app.Field{"Key from", s.KeyFrom}, app.Field{"CA file", s.CAFile},
				app.Field{"Key status", s.Status})
		},
	}
}

func authLogout(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget a profile and its key", Args: cobra.NoArgs,
		Long: "Forget a profile and its key. The key stays valid: who knows it can use it until it is revoked.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var name string
			known := false
			err := profile.Update(cmd.Context(), func(f *profile.File) {
				name = app.First(a.Profile, os.Getenv("SVC_PROFILE"), f.Current)
				_, known = f.Profiles[name]
				delete(f.Profiles, name)
				if f.Current == name {
					f.Current = ""
				}
			})
			if err != nil {
				return err
			}
			if !known {
				return app.Usage("there is no profile %q", name)
			}
			return a.Say(map[string]string{"profile": name}, "Profile %s is forgotten. Its key is still valid.", name)
		},
	}
}
