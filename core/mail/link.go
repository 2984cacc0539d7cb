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

// ParseLink reads the setting of the page: https, or http on this machine. Without a {token} the token becomes the fragment, which
// no browser sends, so that no server's log has it.
func ParseLink(text string) (Link, error) {
	before, after, placed := strings.Cut(text, tokenPlace)
	if !placed {
		before += "#token="
	}
	u, err := url.Parse(before + "a" + after)
	other, otherErr := url.Parse(before + "b" + after)
	switch {
	case err != nil || otherErr != nil:
		return Link{}, invalidLink("is not a URL")
	case u.Host != other.Host:
		return Link{}, invalidLink("must have " + tokenPlace + " behind the host name")
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())):
		return Link{}, invalidLink("must begin with https:// and a host name")
	case u.User != nil:
		return Link{}, invalidLink("must have no user name and no password")
	case !placed && strings.Contains(text, "#"):
		return Link{}, invalidLink("has a fragment without " + tokenPlace)
	case strings.Contains(after, tokenPlace):
		return Link{}, invalidLink("has " + tokenPlace + " twice")
	}
	return Link{before, after}, nil
}

func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func invalidLink(issue string) error { return fault.Invalid("invitation-url", "%s", issue) }

// with is the address for a token; "" without a page.
func (l Link) with(token string) string {
	if l.before == "" {
		return ""
	}
	return l.before + token + l.after
}
