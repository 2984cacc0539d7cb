package wiring

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// NotUsed names the setting of the metadata database, of which an error of the adapter says the servers, and says what to do.
func NotUsed(err error) error {
	return fmt.Errorf("%s: %w%s", settings.Flag("metadata-url"), err, remedy(err))
}

// remedies are what to do, by SQLSTATE.
var remedies = map[string]string{
	"28P01": "; correct the user and the password in the URL",
	"28000": "; correct the user in the URL, or let it in by pg_hba.conf there",
	"3D000": "; make the database there, or correct its name in the URL",
	"42501": "; give the user of the URL the rights on the database, or name the owner of its schema",
	"53300": "; raise max_connections there",
}

// remedy is what to do about a metadata database that cannot be used; empty where the error says it.
func remedy(err error) string {
	var unconnected *pgdb.ConnectError
	var name *net.DNSError
	switch {
	case remedies[pgdb.State(err)] != "":
		return remedies[pgdb.State(err)]
	case !errors.As(err, &unconnected):
		return ""
	case errors.Is(err, pq.ErrSSLNotSupported):
		return "; give it TLS, or say sslmode=disable in the URL where nobody else is on the network between"
	case errors.As(err, &name):
		return "; correct the host in the URL, or enter its name into DNS"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "; start PostgreSQL there, or correct host and port in the URL"
	}
	return "; see that PostgreSQL answers there, or correct the URL"
}
