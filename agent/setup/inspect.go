package setup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pg"
)

// minReserved is how many connections must be kept for the agent when customers have used up all others.
const minReserved = 10

// inspect refuses a server on which the guarantees to customers would not hold.
func inspect(ctx context.Context, db *sql.DB, policy floors.Policy) (Report, error) {
	var number, reserved int
	var super bool
	var version, listen string
	err := db.QueryRowContext(ctx, floors.OfServer+`, current_setting('reserved_connections', true)::int,
		current_setting('is_superuser')::bool, current_setting('listen_addresses')`).
		Scan(&version, &number, ignoreNull{&reserved}, &super, &listen)
	if err != nil {
		return Report{}, fmt.Errorf("reading the server's settings: %w", err)
	}
	server := floors.Server(version, number)
	switch refusal := policy.Judge(server).Admit(); {
	case refusal != nil:
		return Report{}, refusal
	case !super:
		return Report{}, errors.New("--server-url: its login is no superuser, and agent init needs one, such as postgres")
	case reserved < minReserved:
		return Report{}, fmt.Errorf("reserved_connections is %d; set it to %d or more in postgresql.conf and restart PostgreSQL",
			reserved, minReserved)
	}
	if err := refuseTrust(ctx, db); err != nil {
		return Report{}, err
	}
	report := Report{server: server}
	if !onLoopback(listen) {
		report.Warnings = append(report.Warnings, "PostgreSQL listens on "+listen+
			"; customers should reach it through PgBouncer only: set listen_addresses = 'localhost'")
	}
	return report, nil
}

// nobody is the system user that owns nothing.
const nobody = 65534

// asks is the system user that asks programs for their versions, where the caller is root: they may be another user's, who must
// not become root by that. It is one that runs them anyway, if the options name one; nil: the caller.
func (o Options) asks() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, u := range []*FileOwner{o.CredentialsOwner, o.Peer} {
		if u != nil && u.UID != 0 {
			return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
		}
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// inspectPrograms checks the versions of the programs on this machine that the agent works with, and that pg_dump takes the
// server.
func inspectPrograms(ctx context.Context, o Options, server floors.Version) (warnings []string, err error) {
	for _, name := range o.Programs {
		path, err := exec.LookPath(name)
		if err != nil {
			warnings = append(warnings, name+" was not found, so its version was not checked; the agent does that when it starts")
			continue
		}
		found, err := floors.Find(ctx, path, o.asks())
		if err != nil {
			return warnings, err
		}
		if err := o.Versions.Judge(found).Admit(); err != nil {
			return warnings, fmt.Errorf("%s: %w", path, err)
		}
		if found.Program == floors.PgDump {
			if err := found.Dumps(server); err != nil {
				return warnings, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return warnings, nil
}

func refuseTrust(ctx context.Context, db *sql.DB) error {
	found, err := pg.Column(ctx, db, `SELECT pg_catalog.format('line %s %s', line_number,
			coalesce(error, 'lets clients in without a password (trust)')) FROM pg_catalog.pg_hba_file_rules
		WHERE auth_method = 'trust' OR error IS NOT NULL ORDER BY line_number`)
	if err != nil {
		return fmt.Errorf("reading pg_hba.conf: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("pg_hba.conf: %s; use scram-sha-256 or peer, then run agent init again", strings.Join(found, "; "))
}

func onLoopback(listen string) bool {
	addresses := strings.FieldsFunc(listen, func(r rune) bool { return r == ',' || r == ' ' })
	return !slices.ContainsFunc(addresses, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		return a != "localhost" && (err != nil || !ip.IsLoopback())
	})
}

// ignoreNull scans a number that an older server does not have.
type ignoreNull struct{ to *int }

func (n ignoreNull) Scan(v any) error {
	var x sql.NullInt64
	err := x.Scan(v)
	*n.to = int(x.Int64)
	return err
}
