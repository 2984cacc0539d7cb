package cli

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
)

// app is what the commands of one invocation share.
type app struct {
	profile, url, caFile string
	insecureHTTP         bool
	timeout              time.Duration
	json                 bool
	jq                   string

	ctx      context.Context // of the invocation, which an app lives as long as
	filter   *gojq.Code      // of --jq; nil for none
	in       io.Reader
	out, err screen
	target   target
	client   *apiclient.Client
	clock    apiClock
	sent     atomic.Bool // a request that changes something
}

// patience is how long a call waits out an answer that asks to come back later, without --timeout.
const patience = time.Minute

func (a *app) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.profile, "profile", "", "use this profile of the configuration (SVC_PROFILE)")
	f.StringVar(&a.url, "url", "", "the service's address, instead of the profile's (SVC_BASE_URL)")
	f.StringVar(&a.caFile, "ca-file", "", "trust the certificates of this PEM file too (SVC_CA_FILE)")
	f.BoolVar(&a.insecureHTTP, "insecure-http", false, "send the key in clear text to a host that is not this one")
	f.DurationVar(&a.timeout, "timeout", 0,
		"end after this time; without it, an API that is busy or in maintenance is waited for one minute")
	f.BoolVar(&a.json, "json", false, "print JSON with the API's fields")
	f.StringVar(&a.jq, "jq", "", "print what this jq expression makes of the JSON")
}

// begin reads what all commands need, before any of them runs.
func (a *app) begin(cmd *cobra.Command) (err error) {
	a.ctx, a.in = cmd.Context(), cmd.InOrStdin()
	a.out, a.err = screenOf(cmd.OutOrStdout()), screenOf(cmd.ErrOrStderr())
	if a.timeout < 0 || cmd.Flags().Changed("timeout") && a.timeout == 0 {
		return usage("--timeout must be more than 0")
	}
	if cmd.Flags().Changed("jq") && a.jq == "" { // By mistake, as by a script whose variable is not set.
		return usage("--jq must not be empty")
	}
	a.filter, err = compile(a.jq)
	return err
}

// api is the client of the API. Nothing is sent by making it.
func (a *app) api() (*apiclient.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	t, err := a.findTarget()
	if err != nil {
		return nil, err
	}
	a.client, err = a.clientOf(t)
	return a.client, err
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (a *app) clientOf(t target) (*apiclient.Client, error) {
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
		URL: t.URL, Key: t.Key, Attempts: 3, Patience: wait, Waiting: a.sayWaiting,
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
		return nil, usage("--ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, usage("--ca-file: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// sayWaiting tells a person why nothing happens.
func (a *app) sayWaiting(why error, wait time.Duration) {
	what := "the API cannot be reached"
	var e *apiclient.Error
	if errors.As(why, &e) {
		what = "the API says " + first(string(e.Code), fmt.Sprint(e.Status))
	}
	if a.err.terminal || wait >= time.Second {
		a.note("%s; trying again in %ds", what, int(math.Ceil(wait.Seconds())))
	}
}

// note writes a line for people, beside the output.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.err, terminal.VisibleLines(fmt.Sprintf(format, args...))) // There is nowhere else to say it.
}

// screen is where text goes, and what can be shown there.
type screen struct {
	io.Writer
	terminal bool
	width    int // columns; no limit where it is no terminal
	colour   bool
}

// unlimited is the width of what is no terminal.
const unlimited = 1 << 20

func screenOf(w io.Writer) screen {
	s := screen{Writer: w, width: unlimited}
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.terminal, s.width = true, 80
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.width = max(width, 40)
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// group makes a command that has others below it and does nothing itself.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use + " COMMAND", Short: short, DisableFlagsInUseLine: true}
	c.AddCommand(below...)
	return c
}
