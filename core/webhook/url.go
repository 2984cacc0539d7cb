package webhook

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxURLLength is the longest URL, in bytes.
const MaxURLLength = 2048

// Target is a checked URL.
type Target struct {
	URL     string     // absolute, scheme and host in lower case, without a fragment
	Host    string     // name or address, without port, brackets and a final dot
	Port    string     // decimal; "443" where the URL names none
	Address netip.Addr // where the host is an address; not valid where it is a name
}

// ParseURL applies the URL rules that need no look-up (spec, "Webhooks"): an absolute https URL without user name and password,
// to no local name and to public addresses only; a fragment is removed. A refusal is INVALID_WEBHOOK_ENDPOINT and says why.
// DecideAddresses checks what the host name resolves to.
func (p Policy) ParseURL(raw string) (Target, error) {
	if err := checkText(raw); err != nil {
		return Target{}, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Target{}, refuseURL("it is not a URL")
	}
	if err := checkParts(u); err != nil {
		return Target{}, err
	}
	t := Target{Port: u.Port()}
	if t.Host, t.Address, err = p.parseHost(u); err != nil {
		return Target{}, err
	}
	if t.Port, err = parsePort(t.Port); err != nil {
		return Target{}, err
	}
	u.Host = authority(t, u.Port() != "")
	u.Fragment, u.RawFragment = "", ""
	if t.URL = u.String(); len(t.URL) > MaxURLLength {
		return Target{}, errTooLong()
	}
	return t, nil
}

// checkText refuses texts that different parsers read differently.
func checkText(raw string) error {
	switch {
	case raw == "":
		return refuseURL("it is empty")
	case len(raw) > MaxURLLength:
		return errTooLong()
	case !utf8.ValidString(raw):
		return refuseURL("it is not valid UTF-8")
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\\' }):
		return refuseURL("it contains a space, a control character or a backslash")
	}
	return nil
}

func errTooLong() error { return refuseURL("it has more than %d bytes", MaxURLLength) }

func checkParts(u *url.URL) error {
	switch {
	case u.Scheme != "https":
		return refuseURL("it does not begin with https://")
	case u.Opaque != "" || u.Host == "":
		return refuseURL("it is not absolute")
	case u.User != nil:
		return refuseURL("it contains a user name or a password")
	}
	return nil
}

func parsePort(port string) (string, error) {
	if port == "" {
		return "443", nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", refuseURL("its port is not between 1 and 65535")
	}
	return port, nil
}

func authority(t Target, withPort bool) string {
	host := t.Host
	if t.Address.Is6() {
		host = "[" + host + "]"
	}
	if withPort {
		host += ":" + t.Port
	}
	return host
}
