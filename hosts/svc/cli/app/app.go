// Package app holds what the commands of svc share: where the API is, how long to wait, how to ask, and how to print. The exit
// statuses are those of problem.go.
package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/internal/version"
)

// App is what the commands of one invocation share.
type App struct {
	Profile, url, caFile string
	insecureHTTP         bool
	timeout              time.Duration
	json                 bool
	jq                   string
	yes                  bool // what a command asks is answered

	Ctx      context.Context // of the invocation, which an app lives as long as
	filter   *gojq.Code      // of --jq; nil for none
	In       io.Reader
	Out, Err Screen
	Target   Target
	Client   *apiclient.Client
	clock    apiClock
	sent     atomic.Bool // a request that changes something
}

// patience is how long a call waits out an answer that asks to come back later, without --timeout.
const patience = time.Minute

// AddFlags adds the flags that every command has.
func (a *App) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&a.Profile, "profile", "", "use this profile of the configuration (SVC_PROFILE)")
	f.StringVar(&a.url, "url", "", "the service's address, instead of the profile's (SVC_BASE_URL)")
	f.StringVar(&a.caFile, "ca-file", "", "trust the certificates of this PEM file too (SVC_CA_FILE)")
	f.BoolVar(&a.insecureHTTP, "insecure-http", false, "send the key in clear text to a host that is not this one")
	f.DurationVar(&a.timeout, "timeout", 0,
		"end after this time; without it, an API that is busy or in maintenance is waited for one minute")
	f.BoolVar(&a.json, "json", false, "print JSON with the API's fields")
	f.StringVar(&a.jq, "jq", "", "print what this jq expression makes of the JSON")
}

// Begin reads what all commands need, before any of them runs.
func (a *App) Begin(cmd *cobra.Command) (err error) {
	a.Ctx, a.In = cmd.Context(), cmd.InOrStdin()
	a.Out, a.Err = ScreenOf(cmd.OutOrStdout()), ScreenOf(cmd.ErrOrStderr())
	if a.timeout < 0 || cmd.Flags().Changed("timeout") && a.timeout == 0 {
		return Usage("--timeout must be more than 0")
	}
	if cmd.Flags().Changed("jq") && a.jq == "" { // By mistake, as by a script whose variable is not set.
		return Usage("--jq must not be empty")
	}
	a.filter, err = compile(a.jq)
	return err
}

// api is the client of the API. Nothing is sent by making it.
func (a *App) api() (*apiclient.Client, error) {
	if a.Client != nil {
		return a.Client, nil
	}
	t, err := a.FindTarget()
	if err != nil {
		return nil, err
	}
	a.Client, err = a.ClientOf(t)
	return a.Client, err
}

// First is the first of some texts that is not empty.
func First(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// ClientOf is a client of the API at a target. Nothing is sent by making it.
func (a *App) ClientOf(t Target) (*apiclient.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	if t.CAFile != "" && strings.HasPrefix(t.URL, "https:") {    // baseURL has made the scheme small
		pool, err := trusted(t.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	wait := a.timeout
	if wait == 0 {
		wait = patience
	}
	client, err := apiclient.New(apiclient.Config{
		URL: t.URL, Key: t.Key, UserAgent: version.Product("svc"), Attempts: 3, Patience: wait, Waiting: a.sayWaiting,
		HTTP: &http.Client{Transport: dating{sending{transport, &a.sent}, &a.clock}, CheckRedirect: notFollowed},
	})
	if err != nil {
		return nil, wrongURL(err)
	}
	return client, nil
}

// notFollowed keeps a redirect from being followed: the key belongs to the address that it was given for.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// trusted is the system's certificate authorities with those of a file.
func trusted(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, Usage("--ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, Usage("--ca-file: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// sayWaiting tells a person why nothing happens.
func (a *App) sayWaiting(why error, wait time.Duration) {
	what := "the API cannot be reached"
	var e *apiclient.Error
	if errors.As(why, &e) {
		what = "the API says " + First(string(e.Code), fmt.Sprint(e.Status))
	}
	if a.Err.Terminal || wait >= time.Second {
		a.Note("%s; trying again in %ds", what, int(math.Ceil(wait.Seconds())))
	}
}

// Note writes a line for people, beside the output.
func (a *App) Note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Err, terminal.VisibleLines(fmt.Sprintf(format, args...))) // There is nowhere else to say it.
}

// Screen is where text goes, and what can be shown there.
type Screen struct {
	io.Writer
	Terminal bool
	Width    int // columns; no limit where it is no terminal
	colour   bool
}

// Unlimited is the width of what is no terminal.
const Unlimited = 1 << 20

// ScreenOf finds out what a writer can show.
func ScreenOf(w io.Writer) Screen {
	s := Screen{Writer: w, Width: Unlimited}
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.Terminal, s.Width = true, 80
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.Width = max(width, 40)
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// Group makes a command that has others below it and does nothing itself.
func Group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use + " COMMAND", Short: short, DisableFlagsInUseLine: true}
	c.AddCommand(below...)
	return c
}
