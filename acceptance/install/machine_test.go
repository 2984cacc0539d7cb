//go:build linux

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// machine is a Debian: a folder that the page's absolute paths are below, with users and services. The processes of a machine
// that is apart take that folder for /, and have a name and a network of their own: nothing of the page is replaced there.
type machine struct {
	name, root string
	apart      bool
	// launcher starts its processes.
	launcher chan<- func()
	// source is the folder of the program's sources, as far as "make install" needs them.
	source string
	// me is the only user there is, where others cannot be made.
	me       *user.User
	group    string
	tools    toolchain.Tools
	accepted string
	ca       *cluster.CA
	ports    map[string]string
	others   map[string]*machine
	services *services
}

// What is put in place of what the page says, in its commands and in the units. Everything else stands as it is.
var (
	paths = regexp.MustCompile(`(^|[\s='":>(-])/(etc|root|run|usr|var)\b`)
	names = regexp.MustCompile(`\b(db1\.internal\.example|db1\.example\.com|api\.example\.com|db\.example\.com)\b`)
	ports = regexp.MustCompile(`\b(5432|6432|8081|8082|8084|8090|8091|8443|8444)\b`)
	// Where there is one user, of one group.
	users  = regexp.MustCompile(`(-o |--peer-user |--credentials-owner |chown )(postgres|pgherd-agent|pgherd)\b`)
	groups = regexp.MustCompile(`(-g |chgrp |PGHERD_POOLER_GROUP=)(pgherd-agent|pgbouncer)\b`)
)

// output has a process of the machine's end, and returns what it writes.
func (m *machine) output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := m.launch(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

// put puts this machine's own in place of what the page or a unit says.
func (m *machine) put(text string) string {
	if m.apart {
		return text
	}
	text = ports.ReplaceAllStringFunc(text, func(p string) string { return m.ports[p] })
	text = names.ReplaceAllString(text, "localhost")
	if m.me != nil {
		text = users.ReplaceAllString(text, "${1}"+m.me.Username)
		text = groups.ReplaceAllString(text, "${1}"+m.group)
	}
	return paths.ReplaceAllString(text, "${1}"+m.root+"/${2}")
}

// path is where a file of the page's is.
func (m *machine) path(absolute string) string { return filepath.Join(m.root, absolute) }

// inside is how the machine's own processes call a file of the page's.
func (m *machine) inside(absolute string) string {
	if m.apart {
		return filepath.Join("/", absolute)
	}
	return m.path(absolute)
}

// named is where a file is that the machine's processes call so.
func (m *machine) named(path string) string {
	if m.apart {
		return m.path(path)
	}
	return path
}

// find returns a program of this machine, as its processes call it.
func (m *machine) find(name string) string {
	for _, dir := range filepath.SplitList(m.searched()) {
		if path := filepath.Join(dir, name); executable(m.named(path)) {
			return path
		}
	}
	return name
}

// launch starts a process of the machine's.
func (m *machine) launch(cmd *exec.Cmd) error {
	if m.apart {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Chroot = m.root
		if cmd.Dir == "" {
			cmd.Dir = "/"
		}
	}
	return launch(m.launcher, cmd)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// searched is the PATH. It has no Go.
func (m *machine) searched() string {
	own := []string{m.inside("stand-ins"), m.inside("usr/local/bin"), m.inside("usr/sbin"), m.inside("usr/bin")}
	return strings.Join(append(own, "/usr/sbin", "/usr/bin", "/sbin", "/bin"), ":")
}

// environment is that of a shell. psql looks where Debian's does; curl trusts what the machine does.
func (m *machine) environment() []string {
	destination := m.root
	if m.apart {
		destination = ""
	}
	return append(m.settings(),
		"PATH="+m.searched(), "HOME="+m.inside("root"), "LC_ALL=C", "DESTDIR="+destination,
		"PGHOST="+m.inside("var/run/postgresql"), "PGPORT="+m.ports["5432"], "CURL_CA_BUNDLE="+m.inside(trusted))
}

// settings have a host take what the tests run on, where it has known holes.
func (m *machine) settings() []string {
	return []string{"PGHERD_ACCEPT_VERSIONS=" + m.accepted, "PGHERD_ACCEPT_LANGUAGES=plperl,pltcl"}
}

// trusted has the authorities that a machine trusts.
const trusted = "/etc/ssl/certs/ca-certificates.crt"

// newMachines makes the machines of the page.
func newMachines(t *testing.T, root string, one bool) map[string]*machine {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(root, "ca")))(t)
	accepted := versionsOf(t, tools)
	taken := map[string]string{}
	for _, port := range []string{"5432", "6432", "8081", "8082", "8084", "8090", "8091", "8443", "8444"} {
		taken[port] = strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t))
	}
	all := map[string]*machine{}
	for _, name := range []string{"db1", "api"} {
		m := &machine{
			name: name, root: filepath.Join(root, name), source: filepath.Join(root, "source"), tools: tools, ca: ca,
			accepted: accepted, ports: map[string]string{}, others: all, launcher: newLauncher(),
		}
		if one {
			m.me = check.Must(user.Current())(t)
			m.group = check.Must(user.LookupGroupId(m.me.Gid))(t).Name
		}
		for page, here := range taken {
			m.ports[page] = here
		}
		m.services = newServices(m)
		all[name] = m
		m.furnish(t)
	}
	// Nothing on that machine is reached by this port but over the socket, which is in a folder of its own.
	all["api"].ports["5432"] = "5432"
	return all
}

// versionsOf are the versions that the tests run on, whatever holes they have.
func versionsOf(t *testing.T, tools toolchain.Tools) string {
	t.Helper()
	var said []string
	for _, path := range []string{tools.Postgres, tools.PgDump, tools.PgBouncer, tools.PgBackRest} {
		said = append(said, check.Must(floors.Said(t.Context(), path, nil))(t))
	}
	return strings.Join(said, ",")
}

// furnish gives the machine what it has before the page begins.
func (m *machine) furnish(t *testing.T) {
	t.Helper()
	for _, dir := range []string{
		"etc/ssl/certs", "root", "run", "usr/bin", "usr/sbin", "usr/local/bin", "var/lib", "var/run", "stand-ins",
	} {
		check.NoError(t, os.MkdirAll(m.path(dir), 0o755))
	}
	check.NoError(t, os.WriteFile(m.path(trusted), check.Must(os.ReadFile(m.ca.CertFile()))(t), 0o644))
	socket := m.path("stand-ins/machine.socket")
	listen(t, m, socket)
	program := check.Must(filepath.Abs(os.Args[0]))(t)
	if m.apart {
		check.NoError(t, os.WriteFile(m.path("stand-ins/program"), check.Must(os.ReadFile(program))(t), 0o755))
		program, socket = m.inside("stand-ins/program"), m.inside("stand-ins/machine.socket")
	}
	for name := range standIns {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s %s=%s exec %s \"$@\"\n", standInVariable, name, socketVariable, socket, program)
		check.NoError(t, os.WriteFile(m.path("stand-ins/"+name), []byte(script), 0o755))
	}
	if m.me != nil {
		// psql's user is the system's, if it is not told.
		const runuser = "#!/bin/sh\n[ \"$1$3\" = -u-- ] || exit 64\nexport PGUSER=$2\nshift 3\nexec \"$@\"\n"
		check.NoError(t, os.WriteFile(m.path("stand-ins/runuser"), []byte(runuser), 0o755))
	}
}

// program puts a program of the tools' into a folder of the machine.
func (m *machine) program(path, tool string) error {
	if err := os.MkdirAll(filepath.Dir(m.path(path)), 0o755); err != nil {
		return err
	}
	if err := os.Remove(m.path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be a link
		return err
	}
	return os.WriteFile(m.path(path), []byte("#!/bin/sh\nexec "+tool+" \"$@\"\n"), 0o755)
}
