package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// Front is how a host listens to those whom the service is for: programs or browsers.
type Front struct {
	Listen      string
	TLSCertFile string
	TLSKeyFile  string
	// InsecureListen lets it speak clear text beyond this machine.
	InsecureListen bool
	Proxies        []string
	Grace          time.Duration
	RateLimits     map[string]string // "count/period" by class
}

// Flags gives a command the settings. What names the listener in sentences, and listen is its usual address.
func (f *Front) Flags(cmd *cobra.Command, what, listen string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", listen, "address of "+what)
	flags.StringVar(&f.TLSCertFile, "tls-cert-file", "", "certificate chain in PEM; with it "+what+" speaks TLS itself")
	flags.StringVar(&f.TLSKeyFile, "tls-key-file", "", "private key of the certificate")
	flags.BoolVar(&f.InsecureListen, "insecure-listen", false,
		"speak clear text beyond this machine: for a trusted network with a proxy that speaks TLS")
	flags.StringSliceVar(&f.Proxies, "trusted-proxies", nil, "networks whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.DurationVar(&f.Grace, "shutdown-grace", 30*time.Second, "how long open requests may take when the host stops")
	flags.StringToStringVar(&f.RateLimits, "rate-limits", nil,
		"limits by class, such as read=600/1m,write=120/1m,create=30/1m,reveal=60/1m,reservation=6/1h,unauthorized=30/1m,log_in=20/1m")
}

// CheckListen refuses clear text that others on a network could read: it holds keys and passwords.
func (f *Front) CheckListen() error {
	if f.TLSCertFile != "" || f.InsecureListen || loopback(f.Listen) {
		return nil
	}
	return fmt.Errorf("--listen %s would speak clear text beyond this machine: give --tls-cert-file and --tls-key-file, "+
		"or --insecure-listen where a proxy on a trusted network speaks TLS", f.Listen)
}

// loopback reports whether an address is reached from this machine alone.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// OpenTLS opens the certificate, under the name of the part; nil where a proxy before it speaks TLS.
func (f *Front) OpenTLS(part string) (*certfile.Files, error) {
	if f.TLSCertFile == "" && f.TLSKeyFile == "" {
		return nil, nil
	}
	if f.TLSCertFile == "" || f.TLSKeyFile == "" {
		return nil, errors.New("--tls-cert-file and --tls-key-file go together: give both, or none where a proxy speaks TLS")
	}
	files, err := certfile.Open(part, f.TLSCertFile, f.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", settings.Flag("tls-cert-file"), settings.Flag("tls-key-file"), err)
	}
	return files, nil
}

// Trusted are the networks of the proxies.
func (f *Front) Trusted() ([]netip.Prefix, error) { return Networks("trusted-proxies", f.Proxies) }

// Serve is Listen at the address. At the end, open requests have the time of grace to finish; then they are cut off.
func (f *Front) Serve(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, part string, s Server) {
	Listen(lc, stop, log, Address{Part: part, Flag: "listen", Address: f.Listen}, graceful{s, f.Grace})
}

// graceful bounds how long a shutdown waits for open requests.
type graceful struct {
	Server
	grace time.Duration
}

// Shutdown lets open requests finish, then cuts them off.
func (g graceful) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.grace)
	defer cancel()
	return g.Server.Shutdown(ctx)
}
