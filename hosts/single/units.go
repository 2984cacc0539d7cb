package single

import (
	"context"
	"fmt"
	"os"
	"strings"
)

func (m *machine) systemctl(ctx context.Context, args ...string) error {
	_, err := m.run(ctx, call{args: append([]string{"systemctl"}, args...)})
	return err
}

// unit is what systemd says of one.
type unit struct{ runs, enabled bool }

func (m *machine) unit(ctx context.Context, name string) (u unit, err error) {
	text, err := m.run(ctx, call{args: []string{"systemctl", "show", "--property", "ActiveState,UnitFileState", name}})
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "ActiveState=inactive", "ActiveState=failed":
		case "UnitFileState=enabled":
			u.enabled = true
		default:
			u.runs = u.runs || strings.HasPrefix(line, "ActiveState=")
		}
	}
	return u, err
}

// enable has units run, now and after each start of the machine.
func (m *machine) enable(ctx context.Context, names ...string) error {
	for _, name := range names {
		u, err := m.unit(ctx, name)
		if err != nil {
			return err
		}
		if u.runs && u.enabled {
			continue
		}
		if err := m.systemctl(ctx, "enable", "--now", name); err != nil {
			return err
		}
		m.changed("started %s", name)
	}
	return nil
}

// start has a unit run now.
func (m *machine) start(ctx context.Context, name string) error {
	u, err := m.unit(ctx, name)
	if err != nil || u.runs {
		return err
	}
	if err := m.systemctl(ctx, "start", name); err != nil {
		return err
	}
	m.changed("started %s", name)
	return nil
}

// stop has a unit not run for now.
func (m *machine) stop(ctx context.Context, name string) error {
	u, err := m.unit(ctx, name)
	if err != nil || !u.runs {
		return err
	}
	return m.systemctl(ctx, "stop", name)
}

// debiansPooler is the unit of Debian's package, in place of which pgherd-pooler runs.
const debiansPooler = "pgbouncer"

// noOtherPooler refuses a machine on which Debian's PgBouncer serves databases that somebody has given it: it is stopped.
func (m *machine) noOtherPooler(ctx context.Context, _ wanted) error {
	const file = "/etc/pgbouncer/pgbouncer.ini"
	u, err := m.unit(ctx, debiansPooler)
	if err != nil || u == (unit{}) {
		return err
	}
	text, err := os.ReadFile(m.path(file))
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil && hasDatabases(string(text)) {
		err = fmt.Errorf("%s has databases, and setup would stop Debian's PgBouncer, which serves them: move them to another "+
			"machine, and run \"systemctl disable --now %s\"", m.path(file), debiansPooler)
	}
	return err
}

// hasDatabases reports whether PgBouncer's settings name databases, or read files that may.
func hasDatabases(ini string) bool {
	var databases bool
	for line := range strings.Lines(ini) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.ContainsAny(line[:1], ";#"):
		case strings.HasPrefix(line, "["):
			databases = strings.EqualFold(line, "[databases]")
		case databases || strings.HasPrefix(line, "%include"):
			return true
		}
	}
	return false
}

// stopDebiansPooler has Debian's PgBouncer not run, now and after each start of the machine.
func (m *machine) stopDebiansPooler(ctx context.Context) error {
	u, err := m.unit(ctx, debiansPooler)
	if err != nil || u == (unit{}) {
		return err
	}
	if err := m.systemctl(ctx, "disable", "--now", debiansPooler); err != nil {
		return err
	}
	m.changed("stopped and disabled %s", debiansPooler)
	return nil
}
