package admin

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/network"
)

// keyBounds are the flags for when a key ends and where it may be used from.
type keyBounds struct {
	given    *pflag.FlagSet
	expires  string
	networks []string
}

func (b *keyBounds) flags(cmd *cobra.Command) {
	b.given = cmd.Flags()
	b.given.StringVar(&b.expires, "expires", "", "end of the key: 90d or 12h from now, a time as 2027-03-01T00:00:00Z, or never")
	b.given.StringSliceVar(&b.networks, "network", nil,
		"network that the key may be used from, as 192.0.2.0/24; may be repeated; any: from everywhere")
}

// read returns the bounds that are given.
func (b *keyBounds) read() (bounds keys.Bounds, err error) {
	if b.given.Changed("expires") {
		expires, err := account.ParseExpiry(b.expires)
		if err != nil {
			return bounds, err
		}
		bounds.Expires = &expires
	}
	if b.given.Changed("network") {
		networks, err := network.ParseList("network", b.networks)
		if err != nil {
			return bounds, err
		}
		bounds.Networks = &networks
	}
	return bounds, nil
}

// boundsRow is when a key ends, and where it may be used from.
func boundsRow(k account.Key) row {
	row := row{{"expiresAt", k.ExpiresAt}, {"networks", nil}}
	if k.Networks != "" {
		row[1].Value = k.Networks.Texts()
	}
	return row
}
