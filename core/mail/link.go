package mail

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Link is the page on which invitations are accepted, with a place for the token. The zero value is none: then a mail says how to
// accept by the API.
type Link struct{ before, after string }

// tokenPlace is what a setting has in the place of the token.
const tokenPlace = "{token}"

// ParseLink reads the setting of the page: https, or http on this machine. Without a {token} the token becomes the fragment,
// which no browser sends, so that no server's log has it.
func ParseLink(text string) (Link, error) { return parseLink("invitation-url", text) }

// DashboardPages are those of the dashboard at an address. They take the token in their path: the fragment is nothing to a page
// without script.
func DashboardPages(address string) (p Pages, err error) {
	address = strings.TrimSuffix(address, "/")
	if strings.ContainsAny(address, "?#{}") {
		return p, invalidLink(dashboard, "must have no query and no fragment")
	}
	if p.Invitation, err = parseLink(dashboard, address+"/invitation/"+tokenPlace); err != nil {
		return p, err
	}
	p.Reset, err = parseLink(dashboard, address+"/reset/"+tokenPlace)
	return p, err
}

const dashboard = "dashboard-url"

func parseLink(setting, text string) (Link, error) {
	before, after, placed := strings.Cut(text, tokenPlace)
	if !placed {
		before += "#token="
	}
	u, err := url.Parse(before + "a" + after)
	other, otherErr := url.Parse(before + "b" + after)
	switch {
	case err != nil || otherErr != nil:
		return Link{}, invalidLink(setting, "is not a URL")
	case u.Host != other.Host:
		return Link{}, invalidLink(setting, "must have "+tokenPlace+" behind the host name")
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())):
		return Link{}, invalidLink(setting, "must begin with https:// and a host name")
	case u.User != nil:
		return Link{}, invalidLink(setting, "must have no user name and no password")
	case !placed && strings.Contains(text, "#"):
		return Link{}, invalidLink(setting, "has a fragment without "+tokenPlace)
	case strings.Contains(after, tokenPlace):
		return Link{}, invalidLink(setting, "has "+tokenPlace+" twice")
	}
	return Link{before, after}, nil
}

func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func invalidLink(setting, issue string) error { return fault.Invalid(setting, "%s", issue) }

// With is the address for a token; "" without a page.
func (l Link) With(token string) string {
	if l.before == "" {
		return ""
	}
	return l.before + token + l.after
}
