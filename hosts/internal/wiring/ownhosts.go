package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

const refusedNetworks = "webhook-refused-networks"

// Networks reads the networks of a setting. An error names the setting.
func Networks(flag string, texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() { // an address of IPv4 is one, however it has come
			return nil, fmt.Errorf("--%s: %q is no network such as 203.0.113.0/24 or 2001:db8::/32", flag, text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

const (
	// ownEvery is how long a new server, or a new address of one, may go unnoticed.
	ownEvery = 30 * time.Second
	// ownSoon is how soon they are looked for again while some are unknown: nothing is sent until then.
	ownSoon = 2 * time.Second
	// ownLimit bounds one look at all of them.
	ownLimit = 20 * time.Second
)

// hostsOf lists where agents can be reached: at the hosts of their URLs and, where they listen at every address of their servers,
// at the hosts that customers connect to.
func hostsOf(servers []server.Server) (hosts []string) {
	for _, one := range servers {
		if u, err := url.Parse(one.AgentURL); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		}
		hosts = append(hosts, one.PublicHost)
	}
	return hosts
}

// newOwnHosts finds the addresses of the servers and of the metadata database before the host starts, and again and again while
// it runs, so that no customer's webhook reaches them. Until it knows them, none is sent.
func newOwnHosts(
	lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, m metrics.Registry, s Settings, store *postgres.Store,
) (*guarded.Own, error) {
	own := &guarded.Own{Resolver: s.Webhooks.Resolver, Now: time.Now, Hosts: func(ctx context.Context) ([]string, error) {
		servers, err := ports.Read(ctx, store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
			return tx.Servers().List(ctx)
		})
		if err != nil {
			err = fmt.Errorf("the servers cannot be listed: %w", err)
		}
		return append(hostsOf(servers), postgres.Config{URL: s.MetadataURL}.Hosts()...), err
	}}
	const unread, unknown = "unread", "unknown" // what fails: the list, the look-ups
	failures, place := repeat.New(time.Now), zap.String("metadata", postgres.Config{URL: s.MetadataURL}.Place())
	look := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, ownLimit)
		defer cancel()
		err := own.Refresh(ctx)
		switch {
		case err == nil:
			failures.Ended(unread)
			failures.Ended(unknown)
			return
		case errors.Is(ctx.Err(), context.Canceled):
			return
		}
		kept := "webhooks are kept from the addresses that were found"
		if !own.Known() {
			kept = "no webhooks are sent, and no issuers of CI tokens asked, until they are known"
		}
		if errors.Is(err, ports.ErrUnavailable) {
			if worth, held := failures.Failed(unread); worth {
				log.Warn("the own hosts cannot be listed while the metadata database does not answer; "+kept, place,
					zap.Int("repeated", held), zap.Error(err))
			}
			return
		}
		failures.Ended(unread)
		if worth, held := failures.Failed(unknown); worth {
			log.Warn("not all own hosts could be looked up; "+kept, zap.Int("repeated", held), zap.Error(err))
		}
	}
	lc.Append(fx.StartHook(look))
	Attach(lc, stop, log, Part{Name: "own hosts", Run: func(ctx context.Context) error {
		for {
			next := ownEvery
			if !own.Known() {
				next = ownSoon
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(next):
				look(ctx)
			}
		}
	}})
	return own, m.YesOrNo("pgherd_own_hosts_known",
		"1 if this host has found the addresses of all servers and of the metadata database, where it sends no webhooks.",
		own.Complete)
}
