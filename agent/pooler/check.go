package pooler

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrUnwritable is wrapped by every refusal of Render: the state contains something that cannot be written safely into
// PgBouncer's files.
var ErrUnwritable = errors.New("pooler: state cannot be written")

// A database name leaves room for TransactionSuffix within PgBouncer's 63 bytes, and has no dot, so that no first entry can be
// mistaken for another database's second entry.
var (
	databaseName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,50}$`)
	loginName    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

func unwritable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnwritable}, args...)...)
}

// checkState refuses names, networks and limits that must not reach a file. It repairs nothing: a wrong name means a wrong state.
func checkState(s State) error {
	if err := checkSettings(s.Settings); err != nil {
		return err
	}
	databases := map[string]bool{"pgbouncer": true, s.Settings.MaintenanceDatabase: true, canaryDatabase: true, goneDatabase: true}
	logins := map[string]bool{"pgbouncer": true, s.Settings.AuthUser: true, s.Settings.AdminUser: true}
	for _, e := range s.Entries {
		if err := checkEntry(e); err != nil {
			return err
		}
		if databases[e.Database] {
			return unwritable("database %q is reserved or stands twice", e.Database)
		}
		databases[e.Database] = true
		for _, l := range e.Logins {
			if logins[l.Name] {
				return unwritable("login %q is reserved or stands twice", l.Name)
			}
			logins[l.Name] = true
		}
	}
	for _, database := range s.Lingering {
		if !databaseName.MatchString(database) || databases[database] {
			return unwritable("database %q is reserved or stands twice, and cannot linger", database)
		}
		databases[database] = true
	}
	return nil
}

func checkEntry(e Entry) error {
	if !databaseName.MatchString(e.Database) {
		return unwritable("database name %q", e.Database)
	}
	if e.ConnectionCap < 0 {
		return unwritable("database %q: connection cap %d", e.Database, e.ConnectionCap)
	}
	for _, p := range e.Allow {
		if err := checkPrefix(p); err != nil {
			return unwritable("database %q: network %s: %v", e.Database, p, err)
		}
	}
	for _, a := range e.Welcome {
		if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
			return unwritable("database %q: address %s", e.Database, a)
		}
	}
	if at := e.Elsewhere; at != (Socket{}) && (!filepath.IsAbs(at.Dir) || !oneLine(at.Dir) || at.Number < 1 || at.Number > 65535) {
		return unwritable("database %q: socket %q %d", e.Database, at.Dir, at.Number)
	}
	for _, l := range e.Logins {
		if !loginName.MatchString(l.Name) {
			return unwritable("login name %q", l.Name)
		}
		if l.MaxConnections < 0 {
			return unwritable("login %q: connection limit %d", l.Name, l.MaxConnections)
		}
	}
	return nil
}

// checkPrefix refuses networks with host bits, which PgBouncer accepts and then never matches, and IPv4-mapped addresses, which
// it never sees.
func checkPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return errors.New("not a network")
	case p.Addr().Is4In6() || p.Addr().Zone() != "":
		return errors.New("not a plain IPv4 or IPv6 network")
	case p != p.Masked():
		return errors.New("has host bits")
	}
	return nil
}

func checkSettings(s Settings) error {
	texts := []struct {
		field, value string
		required     bool
	}{
		{"Dir", s.Dir, true},
		{"SocketDir", s.SocketDir, true},
		{"ListenAddresses", strings.Join(s.ListenAddresses, ","), true},
		{"TLSCertFile", s.TLSCertFile, true},
		{"TLSKeyFile", s.TLSKeyFile, true},
		{"ServerHost", s.ServerHost, true},
		{"AuthPassword", s.AuthPassword, true},
		{"AdminPassword", s.AdminPassword, true},
		{"LogFile", s.LogFile, false},
		{"PIDFile", s.PIDFile, false},
	}
	for _, t := range texts {
		if t.required && t.value == "" {
			return unwritable("setting %s is empty", t.field)
		}
		if !oneLine(t.value) {
			return unwritable("setting %s has a character that the file cannot hold", t.field)
		}
	}
	for field, name := range map[string]string{
		"MaintenanceDatabase": s.MaintenanceDatabase, "AuthUser": s.AuthUser, "AdminUser": s.AdminUser,
	} {
		if !loginName.MatchString(name) {
			return unwritable("setting %s: name %q", field, name)
		}
	}
	return checkNumbers(s)
}

func checkNumbers(s Settings) error {
	for field, n := range map[string]int{
		"ListenPort": s.ListenPort, "ServerPort": s.ServerPort, "MaxClients": s.MaxClients,
		"MaxDatabaseClients": s.MaxDatabaseClients, "UncappedPoolSize": s.UncappedPoolSize,
	} {
		if n < 1 {
			return unwritable("setting %s: %d", field, n)
		}
	}
	if s.MaxPacket < LeastPacket || s.MaxPacket > MostPacket {
		return unwritable("setting MaxPacket: %d is not from %d to %d", s.MaxPacket, LeastPacket, MostPacket)
	}
	return nil
}

// oneLine reports whether PgBouncer reads a value back unchanged: it trims white space and stops at a line break.
func oneLine(s string) bool {
	hasControl := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	return !hasControl && s == strings.TrimSpace(s)
}
