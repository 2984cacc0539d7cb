package app

import (
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/hosts/internal/profile"
)

// Target is where the API is, and the key for it.
type Target struct {
	profile.Profile
	Name             string // of the profile that it is from; "" for none
	URLFrom, KeyFrom string // the flag, the variable or the profile that says so
}

// FindTarget is where the API is, and the key for it. A profile's key is only sent where the profile says: an address from
// elsewhere needs a key from the environment.
func (a *App) FindTarget() (Target, error) {
	t, err := a.FindService()
	if err != nil {
		return Target{}, err
	}
	key := a.setting(Setting{}, exported("SVC_API_KEY"), Setting{t.Key, "profile " + t.Name})
	if t.Key, t.KeyFrom = key.Value, key.From; t.Key == "" {
		return Target{}, Usage("no API key for %s: log in with \"svc auth login --url %s\", or set SVC_API_KEY", t.URL, t.URL)
	}
	a.Target = t
	return t, nil
}

// FindService is where the API is. The key is the profile's.
func (a *App) FindService() (Target, error) {
	stored, err := profile.Load()
	saidAll := First(a.url, os.Getenv("SVC_BASE_URL")) != "" && os.Getenv("SVC_API_KEY") != ""
	if err != nil && (a.Profile != "" || !saidAll) {
		return Target{}, err // Where the environment says all, nobody needs the file.
	}
	name := First(a.Profile, os.Getenv("SVC_PROFILE"), stored.Current)
	p, known := stored.Profiles[name]
	if !known && First(a.Profile, os.Getenv("SVC_PROFILE")) != "" {
		return Target{}, Usage("there is no profile %q: make it with \"svc auth login --profile %s\"", name, name)
	}
	t, err := a.Service(p, name)
	if err != nil {
		return Target{}, err
	}
	if t.URL == "" {
		return Target{}, Usage("no service is known: log in with \"svc auth login\", or set SVC_BASE_URL and SVC_API_KEY")
	}
	t.CAFile = a.CASetting(t.CAFile).Value
	return t, nil
}

// Service is what a profile says of a service, or the address of another one where a flag or the environment says that. Its
// address may be named, and a key sent there; it is empty where nothing says it.
func (a *App) Service(p profile.Profile, name string) (Target, error) {
	said := a.setting(Setting{a.url, "--url"}, exported("SVC_BASE_URL"), Setting{p.URL, "profile " + name})
	where := baseURL(said.Value)
	if where != baseURL(p.URL) {
		p, name = profile.Profile{}, "" // What is trusted there is not trusted here.
	}
	p.URL = where
	p.InsecureHTTP = p.InsecureHTTP || a.insecureHTTP
	t := Target{Profile: p, Name: name, URLFrom: said.From}
	if where == "" {
		return t, nil
	}
	return t, checkURL(where, p.InsecureHTTP)
}

// CASetting is the file of certificates to trust beside those of the system.
func (a *App) CASetting(stored string) Setting {
	return a.setting(Setting{a.caFile, "--ca-file"}, exported("SVC_CA_FILE"), Setting{stored, "profile"})
}

// Setting is a value, and who says so.
type Setting struct{ Value, From string }

// exported is that of a variable of the environment.
func exported(name string) Setting { return Setting{os.Getenv(name), name} }

// setting takes a value from its flag, else its environment variable, else the profile. A profile that a flag names goes before
// the environment: whoever names it means its service and its key, whatever a shell has exported.
func (a *App) setting(flag, variable, stored Setting) Setting {
	if a.Profile != "" {
		variable, stored = stored, variable
	}
	for _, s := range []Setting{flag, variable, stored} {
		if s.Value != "" {
			return s
		}
	}
	return Setting{}
}

// baseURL is an address as a profile stores it: without the API's path, and in small letters where these are meant.
func baseURL(text string) string {
	text = strings.TrimRight(text, "/")
	text = strings.TrimRight(strings.TrimSuffix(text, "/api/v1"), "/")
	u, err := url.Parse(text)
	if err != nil {
		return text // which is refused where it is used
	}
	u.Host = ascii.Lower(u.Host)
	return u.String()
}

// checkURL refuses an address of which its text cannot be shown, as it may hold a password, or which would have keys and
// passwords cross a network in clear text.
func checkURL(text string, insecure bool) error {
	if _, err := apiclient.New(apiclient.Config{URL: text}); err != nil {
		return wrongURL(err)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || insecure {
		return err
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return Usage("the URL must begin with https: the API key would cross the network in clear text (--insecure-http allows that)")
}

// wrongURL is what apiclient says of an address, without what it holds.
func wrongURL(err error) error { return Usage("%s", strings.TrimPrefix(err.Error(), "apiclient: ")) }
