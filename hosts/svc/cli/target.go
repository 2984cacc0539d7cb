package cli

import (
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/svc/profile"
)

// target is where the API is, and the key for it.
type target struct {
	profile.Profile
	name             string // of the profile that it is from; "" for none
	urlFrom, keyFrom string // the flag, the variable or the profile that says so
}

// findTarget is where the API is, and the key for it. A profile's key is only sent where the profile says: an address from
// elsewhere needs a key from the environment.
func (a *app) findTarget() (target, error) {
	t, err := a.findService()
	if err != nil {
		return target{}, err
	}
	key := a.setting(setting{}, exported("SVC_API_KEY"), setting{t.Key, "profile " + t.name})
	if t.Key, t.keyFrom = key.value, key.from; t.Key == "" {
		return target{}, usage("no API key for %s: log in with \"svc auth login --url %s\", or set SVC_API_KEY", t.URL, t.URL)
	}
	a.target = t
	return t, nil
}

// findService is where the API is. The key is the profile's.
func (a *app) findService() (target, error) {
	stored, err := profile.Load()
	saidAll := first(a.url, os.Getenv("SVC_BASE_URL")) != "" && os.Getenv("SVC_API_KEY") != ""
	if err != nil && (a.profile != "" || !saidAll) {
		return target{}, err // Where the environment says all, nobody needs the file.
	}
	name := first(a.profile, os.Getenv("SVC_PROFILE"), stored.Current)
	p, known := stored.Profiles[name]
	if !known && first(a.profile, os.Getenv("SVC_PROFILE")) != "" {
		return target{}, usage("there is no profile %q: make it with \"svc auth login --profile %s\"", name, name)
	}
	t, err := a.service(p, name)
	if err != nil {
		return target{}, err
	}
	if t.URL == "" {
		return target{}, usage("no service is known: log in with \"svc auth login\", or set SVC_BASE_URL and SVC_API_KEY")
	}
	t.CAFile = a.caSetting(t.CAFile).value
	return t, nil
}

// service is what a profile says of a service, or the address of another one where a flag or the environment says that. Its
// address may be named, and a key sent there; it is empty where nothing says it.
func (a *app) service(p profile.Profile, name string) (target, error) {
	said := a.setting(setting{a.url, "--url"}, exported("SVC_BASE_URL"), setting{p.URL, "profile " + name})
	where := baseURL(said.value)
	if where != baseURL(p.URL) {
		p, name = profile.Profile{}, "" // What is trusted there is not trusted here.
	}
	p.URL = where
	p.InsecureHTTP = p.InsecureHTTP || a.insecureHTTP
	t := target{Profile: p, name: name, urlFrom: said.from}
	if where == "" {
		return t, nil
	}
	return t, checkURL(where, p.InsecureHTTP)
}

// caSetting is the file of certificates to trust beside those of the system.
func (a *app) caSetting(stored string) setting {
	return a.setting(setting{a.caFile, "--ca-file"}, exported("SVC_CA_FILE"), setting{stored, "profile"})
}

// setting is a value, and who says so.
type setting struct{ value, from string }

// exported is that of a variable of the environment.
func exported(name string) setting { return setting{os.Getenv(name), name} }

// setting takes a value from its flag, else its environment variable, else the profile. A profile that a flag names goes before
// the environment: whoever names it means its service and its key, whatever a shell has exported.
func (a *app) setting(flag, variable, stored setting) setting {
	if a.profile != "" {
		variable, stored = stored, variable
	}
	for _, s := range []setting{flag, variable, stored} {
		if s.value != "" {
			return s
		}
	}
	return setting{}
}

// baseURL is an address as a profile stores it: without the API's path, and in small letters where these are meant.
func baseURL(text string) string {
	text = strings.TrimRight(text, "/")
	text = strings.TrimRight(strings.TrimSuffix(text, "/api/v1"), "/")
	u, err := url.Parse(text)
	if err != nil {
		return text // which is refused where it is used
	}
	u.Host = strings.ToLower(u.Host)
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
	return usage("the URL must begin with https: the API key would cross the network in clear text (--insecure-http allows that)")
}

// wrongURL is what apiclient says of an address, without what it holds.
func wrongURL(err error) error { return usage("%s", strings.TrimPrefix(err.Error(), "apiclient: ")) }
