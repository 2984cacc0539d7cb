package wiring

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/passkeys"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/ports"
)

// Dashboard says what the dashboard is to browsers and devices. Its address is Mail.Dashboard, which all hosts have, since links
// in mails lead there.
type Dashboard struct {
	// PasskeyHost is the name that passkeys belong to, for ever; empty for that of the address.
	PasskeyHost string
	Product     string // how the service is called; empty for a host that serves no pages
}

// Flags gives a command the settings.
func (d *Dashboard) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.PasskeyHost, "passkey-host", "",
		"name that passkeys belong to; by default that of --dashboard-url, and then with another name all passkeys are lost")
	f.StringVar(&d.Product, "product-name", "pgherd", "how the service is called in the dashboard and on people's devices")
}

// Origin is where browsers find the dashboard with an address: scheme and host; nil where there is none.
func (d Dashboard) Origin(address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" {
		return nil, fmt.Errorf("--dashboard-url must be https:// and a host name, without a path: %q is not", address)
	}
	u.Host = strings.TrimSuffix(ascii.Lower(u.Host), ":443") // as browsers name it
	if h := d.PasskeyHost; h != "" && h != u.Hostname() && !strings.HasSuffix(u.Hostname(), "."+h) {
		return nil, errors.New("--passkey-host must be the host of --dashboard-url, or a domain that this is in")
	}
	return u, nil
}

// passkeys is the verifier; nil where there is no dashboard, or another host serves it.
func (d Dashboard) passkeys(address string) (ports.PasskeyVerifier, error) {
	u, err := d.Origin(address)
	if u == nil || err != nil || d.Product == "" {
		return nil, err
	}
	host := d.PasskeyHost
	if host == "" {
		host = u.Hostname()
	}
	v, err := passkeys.New(passkeys.Site{Host: host, Origin: u.String(), Name: d.Product})
	if err != nil {
		return nil, fmt.Errorf("--dashboard-url, --passkey-host: %w", err)
	}
	return v, nil
}
