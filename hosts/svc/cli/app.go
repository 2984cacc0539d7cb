package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/profile"
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
}

// patience is how long a call waits out an answer that asks to come back later, without --timeout.
const patience = time.Minute

func (a *app) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.profile, "profile", "", "use this profile of the configuration (SVC_PROFILE)")
	f.StringVar(&a.url, "url", "", "the service's address, instead of the profile's (SVC_URL)")
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

// target is where the API is, and the key for it.
type target struct {
	profile.Profile
	name string // of the profile that it is from; "" for none
}

// findTarget is where the API is, and the key for it. A profile's key is only sent where the profile says: an address from
// elsewhere needs a key from the environment.
func (a *app) findTarget() (target, error) {
	t, err := a.findService()
	if err != nil {
		return target{}, err
	}
	if t.Key = first(os.Getenv("SVC_API_KEY"), t.Key); t.Key == "" {
		return target{}, usage("no API key for %s: log in with \"svc auth login --url %s\", or set SVC_API_KEY", t.URL, t.URL)
	}
	a.target = t
	return t, nil
}

// findService takes each value from its flag, else its environment variable, else the profile. The key is the profile's.
func (a *app) findService() (target, error) {
	stored, err := profile.Load()
	if complete := a.givenURL() != "" && os.Getenv("SVC_API_KEY") != ""; err != nil && !complete {
		return target{}, err // Where the environment says all, nobody needs the file.
	}
	name := first(a.profile, os.Getenv("SVC_PROFILE"), stored.Current)
	p, known := stored.Profiles[name]
	if !known && first(a.profile, os.Getenv("SVC_PROFILE")) != "" {
		return target{}, usage("there is no profile %q: make it with \"svc auth login --profile %s\"", name, name)
	}
	t := target{Profile: p, name: name}
	if !known {
		t.name = ""
	}
	if given := a.givenURL(); given != "" && given != p.URL {
		t = target{Profile: profile.Profile{URL: given}}
	}
	t.CAFile = first(a.caFile, os.Getenv("SVC_CA_FILE"), t.CAFile)
	t.InsecureHTTP = t.InsecureHTTP || a.insecureHTTP
	if _, err := apiclient.New(apiclient.Config{URL: t.URL}); t.URL != "" && err != nil {
		return target{}, wrongURL(err) // before it is named, as it may hold a password
	}
	if t.URL == "" {
		return target{}, usage("no service is known: log in with \"svc auth login\", or set SVC_URL and SVC_API_KEY")
	}
	return t, nil
}

// wrongURL is what apiclient says of an address, without what it holds.
func wrongURL(err error) error { return usage("%s", strings.TrimPrefix(err.Error(), "apiclient: ")) }

// givenURL is the service's address from the flag or the environment, as a profile stores it: without the API's path.
func (a *app) givenURL() string {
	url := strings.TrimRight(first(a.url, os.Getenv("SVC_URL")), "/")
	return strings.TrimRight(strings.TrimSuffix(url, "/api/v1"), "/")
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
	if err := checkURL(t.URL, t.InsecureHTTP); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	if t.CAFile != "" && strings.HasPrefix(t.URL, "https:") {
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
		HTTP: &http.Client{Transport: dating{transport, &a.clock}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // The key belongs to the address that it was given for.
		}},
	})
	if err != nil {
		return nil, wrongURL(err)
	}
	return client, nil
}

// checkURL keeps keys and passwords from crossing a network in clear text.
func checkURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || insecure {
		return nil //nolint:nilerr // apiclient says what is wrong with a URL, without its password
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return usage("the URL must begin with https: the API key would cross the network in clear text (--insecure-http allows that)")
}

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
