package webhook

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// localNames are host names with a meaning only inside a network; names below them are included.
var localNames = []string{"localhost", "local", "internal"}

const (
	maxName  = 253
	maxLabel = 63
)

// parseHost reads the host of a URL as a name or as an address. Its characters are checked before letter case is removed.
func (p Policy) parseHost(u *url.URL) (string, netip.Addr, error) {
	if !ascii.Visible(u.Host) {
		return "", netip.Addr{}, errNoHostName()
	}
	host := ascii.Lower(u.Hostname())
	if strings.HasPrefix(u.Host, "[") {
		return p.parseAddress(host)
	}
	host = strings.TrimSuffix(host, ".")
	if endsInNumber(host) {
		return p.parseAddress(host)
	}
	return host, netip.Addr{}, p.checkName(host)
}

// parseAddress accepts the one usual way to write an address: four decimal numbers without leading zeros, or IPv6.
func (p Policy) parseAddress(host string) (string, netip.Addr, error) {
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "", a, refuseURL("its host is an address in an unusual form")
	case a.Zone() != "":
		return "", a, refuseURL("its address has a zone")
	}
	if name := p.refusal(a); name != "" {
		return "", a, refuseURL("its address is not public (%s)", name)
	}
	return a.String(), a, nil
}

// endsInNumber distinguishes names from numbers as browsers and C libraries do: if the last label is a decimal, octal or
// hexadecimal number, they read the whole as an IPv4 address ("2130706433", "0x7f.1", "127.1").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, isHex := strings.CutPrefix(last, "0x"); isHex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func errNoHostName() error {
	return refuseURL("its host is not a host name; names in other scripts are written in their xn-- form")
}

func (p Policy) checkName(host string) error {
	if host == "" || len(host) > maxName {
		return refuseURL("its host name is empty or longer than %d characters", maxName)
	}
	for label := range strings.SplitSeq(host, ".") {
		if !validLabel(label) {
			return errNoHostName()
		}
	}
	if p.AllowPrivate {
		return nil
	}
	for _, local := range localNames {
		if host == local || strings.HasSuffix(host, "."+local) {
			return refuseURL("its host name is local (%s)", local)
		}
	}
	if !strings.Contains(host, ".") {
		return refuseURL("its host name is not a full one")
	}
	return nil
}

// validLabel accepts letters, digits, inner hyphens, and underscores, which some providers' names contain.
func validLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
