//go:build linux

package install

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

const socketVariable = "PGHERD_INSTALL_SOCKET"

// standIns are what Debian has and a folder of this machine has not: a package manager, a service manager with its makers of
// users and folders, an authority, and a network.
var standIns = map[string]func(m *machine, args []string) error{
	"apt-get":          (*machine).aptGet,
	"systemctl":        (*machine).systemctl,
	"systemd-sysusers": (*machine).sysusers,
	"systemd-tmpfiles": (*machine).tmpfiles,
	"usermod":          (*machine).usermod,
	"certbot":          (*machine).certbot,
	"scp":              (*machine).scp,
}

// asked is what a stand-in was started with.
type asked struct {
	Name string
	Args []string
}

// askMachine is the program that stands in for another: the machine itself does the work.
func askMachine(name string, args []string) int {
	conn, err := net.Dial("unix", os.Getenv(socketVariable))
	if err == nil {
		err = json.NewEncoder(conn).Encode(asked{name, args})
	}
	var trouble string
	if err == nil {
		err = json.NewDecoder(conn).Decode(&trouble)
	}
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" {
		fmt.Fprintln(os.Stderr, name+":", trouble)
		return 1
	}
	return 0
}

// listen has a machine answer its stand-ins: one may start another, as certbot its hook.
func listen(t *testing.T, m *machine, socket string) {
	t.Helper()
	listener := check.Must(net.Listen("unix", socket))(t)
	var answers sync.WaitGroup
	answers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answers.Go(func() { m.answer(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); answers.Wait() })
}

// answer does what a stand-in is asked.
func (m *machine) answer(conn net.Conn) {
	defer conn.Close()
	var a asked
	var said string
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		said = err.Error()
	} else if err := standIns[a.Name](m, a.Args); err != nil {
		said = fmt.Sprintf("%q: %v", a.Args, err)
	}
	_ = json.NewEncoder(conn).Encode(said)
}

var errUsage = errors.New("the stand-in does not know these arguments")

func (m *machine) aptGet(args []string) error {
	if len(args) > 2 && args[0] == "purge" && args[1] == "--yes" {
		return m.purge(args[2:])
	}
	if len(args) < 3 || args[0] != "install" || args[1] != "--yes" {
		return errUsage
	}
	for _, name := range args[2:] {
		if err := m.install(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return m.services.load()
}

// install does what a package does that the page relies on. A file with a package is installed as it is.
func (m *machine) install(name string) error {
	if strings.HasPrefix(name, "./") {
		return m.unpack(name)
	}
	switch name {
	case "openssl", "curl", "hostname":
		_, err := exec.LookPath(name) // the tests' machine has them
		return err
	case "postgresql-client":
		return m.program("usr/bin/psql", m.tools.Psql)
	case "certbot": // a stand-in
		return nil
	case "postgresql-common":
		return m.program("usr/share/postgresql-common/pgdg/apt.postgresql.org.sh", "true")
	case "pgbouncer":
		m.services.debian["pgbouncer"] = true
		return m.program("usr/sbin/pgbouncer", m.tools.PgBouncer)
	case "pgbackrest":
		return m.program("usr/bin/pgbackrest", m.tools.PgBackRest)
	case "postgresql", "postgresql-16":
		return m.installPostgres()
	case "haproxy":
		return m.installBalancer()
	case "netcat-openbsd":
		return m.balancerProgram("usr/bin/nc", "nc")
	}
	return errors.New("no such package")
}

// unpack installs a package as Debian does. What it depends on the machine has, or has a stand-in for.
func (m *machine) unpack(file string) error {
	return m.dpkg("--force-depends", "--no-triggers", "--install", filepath.Join(m.source, file))
}

// purge removes packages with their settings. Where systemd runs, that stops their units.
func (m *machine) purge(names []string) error {
	for name := range m.services.units {
		if strings.HasPrefix(name, "pgherd-") {
			if err := m.services.end(name); err != nil {
				return err
			}
		}
	}
	if err := m.dpkg(append([]string{"--purge"}, names...)...); err != nil {
		return err
	}
	return m.services.load()
}

func (m *machine) dpkg(args ...string) error {
	if !m.apart {
		return errors.New("the machine has no packages")
	}
	dpkg := exec.Command("dpkg", append([]string{"--force-unsafe-io"}, args...)...)
	dpkg.Env = append(m.environment(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := m.output(dpkg); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// installPostgres makes a cluster and starts it, with the files and the pg_hba.conf of Debian's package.
func (m *machine) installPostgres() error {
	uid, gid, err := m.addUser("postgres")
	if err != nil {
		return err
	}
	const dir, conf, run = "var/lib/postgresql/16/main", "etc/postgresql/16/main", "var/run/postgresql"
	for _, folder := range []string{filepath.Dir(dir), conf + "/conf.d", run} {
		if err := os.MkdirAll(m.path(folder), 0o755); err != nil {
			return err
		}
	}
	for _, folder := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), conf, run} {
		if err := os.Chown(m.path(folder), uid, gid); err != nil {
			return err
		}
	}
	err = errors.Join(
		m.program("usr/lib/postgresql/16/bin/postgres", m.tools.Postgres),
		m.program("usr/lib/postgresql/16/bin/pg_dump", m.tools.PgDump), m.program("usr/bin/psql", m.tools.Psql),
		m.program("usr/bin/pg_dump", m.tools.PgDump))
	if err != nil {
		return err
	}
	initdb := m.services.as("postgres", m.tools.Initdb, "--no-sync", "--username=postgres", "--auth=peer", "--encoding=UTF8",
		"--locale=C", "-D", m.inside(dir))
	if out, err := m.output(initdb); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for name, text := range m.clusterFiles(dir, conf, run) {
		if err := os.WriteFile(m.path(conf+"/"+name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	m.services.units["postgresql@16-main"] = unit{
		"ExecStart": {m.inside("usr/lib/postgresql/16/bin/postgres") + " -D " + m.inside(conf)},
		"User":      {"postgres"}, "Group": {"postgres"}, "KillSignal": {"SIGINT"},
	}
	m.services.ready["postgresql@16-main"] = func() bool {
		text, err := os.ReadFile(m.path(dir + "/postmaster.pid"))
		return err == nil && strings.Contains(string(text), "ready")
	}
	return m.services.start("postgresql@16-main")
}

// installBalancer does not start HAProxy, as Debian's package does with a configuration that serves nobody.
func (m *machine) installBalancer() error {
	uid, gid, err := m.addUser("haproxy")
	if err != nil {
		return err
	}
	for _, dir := range []string{"etc/haproxy", "run/haproxy", "var/lib/haproxy"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			return err
		}
	}
	m.services.units["haproxy"] = unit{
		"ExecStart":  {"/usr/sbin/haproxy -W -f /etc/haproxy/haproxy.cfg"},
		"ExecReload": {"/bin/kill -USR2 $MAINPID"}, "User": {"root"}, "Group": {"root"}, "LimitNOFILE": {"524288"},
		"Restart": {"always"},
	}
	m.services.ready["haproxy"] = func() bool {
		_, err := os.Stat(m.path("run/haproxy/admin.sock"))
		return err == nil
	}
	return errors.Join(os.Chown(m.path("run/haproxy"), uid, gid), m.balancerProgram("usr/sbin/haproxy", "haproxy"))
}

func (m *machine) balancerProgram(path, name string) error {
	folder, err := toolchain.Folder(toolchain.Balancer)
	if err != nil {
		return err
	}
	return m.program(path, filepath.Join(folder, "bin", name))
}

// clusterFiles are Debian's, but that nothing is forced to the disk, and that nothing listens on a network before the page says
// so. Where all users are one, this one may be any of them.
func (m *machine) clusterFiles(dir, conf, run string) map[string]string {
	mapped, ident := "", ""
	if m.me != nil {
		mapped, ident = " map=one", "one "+m.me.Username+" postgres\none "+m.me.Username+" pgherd\n"
	}
	return map[string]string{
		"pg_hba.conf": "local all postgres peer" + mapped + "\nlocal all all peer" + mapped +
			"\nhost all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n",
		"pg_ident.conf": ident,
		"postgresql.conf": fmt.Sprintf("data_directory = '%s'\nhba_file = '%s'\nident_file = '%s'\nport = %s\n"+
			"unix_socket_directories = '%s'\nlisten_addresses = ''\nfsync = off\nshared_buffers = 32MB\ninclude_dir = 'conf.d'\n",
			m.inside(dir), m.inside(conf+"/pg_hba.conf"), m.inside(conf+"/pg_ident.conf"), m.ports["5432"], m.inside(run)),
	}
}

// addUser makes a system user and its group, where they are not there.
func (m *machine) addUser(name string) (uid, gid int, err error) {
	if m.me == nil {
		if err := appendAccount(m.named("/etc/group"), name, "%s:x:%d:\n"); err != nil {
			return 0, 0, err
		}
		if err := appendAccount(m.named("/etc/passwd"), name, "%s:x:%d:%[2]d::/nonexistent:/usr/sbin/nologin\n"); err != nil {
			return 0, 0, err
		}
	}
	return m.ids(name)
}

// appendAccount writes a line for a name that has none. A user's number is its group's, unless the machine had one of the two.
func appendAccount(file, name, format string) error {
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains("\n"+string(text), "\n"+name+":") {
		return err
	}
	id := 0
	for _, b := range []byte(name) { // the same in both files
		id = (id*31 + int(b)) % 10_000
	}
	return os.WriteFile(file, append(text, fmt.Sprintf(format, name, 40_000+id)...), 0o644)
}

// ids are the numbers of a user and of the group of that name.
func (m *machine) ids(name string) (uid, gid int, err error) {
	if m.me != nil {
		uid, uidErr := strconv.Atoi(m.me.Uid)
		gid, gidErr := strconv.Atoi(m.me.Gid)
		return uid, gid, errors.Join(uidErr, gidErr)
	}
	uid, uidErr := number(m.named("/etc/passwd"), name)
	gid, gidErr := number(m.named("/etc/group"), name)
	return uid, gid, errors.Join(uidErr, gidErr)
}

func number(file, name string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); fields[0] == name {
			return strconv.Atoi(fields[2])
		}
	}
	return 0, fmt.Errorf("%s is not in %s", name, file)
}

// fragment reads a file of make install's or of a package's, without comments.
func (m *machine) fragment(path string) (lines [][]string, err error) {
	file, err := os.Open(m.path("usr/local/" + path))
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.Open(m.path("usr/" + path))
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	for scan.Scan() {
		if words := strings.Fields(scan.Text()); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			lines = append(lines, words)
		}
	}
	return lines, scan.Err()
}

func (m *machine) sysusers(args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	lines, err := m.fragment("lib/sysusers.d/" + args[0])
	for _, words := range lines {
		switch {
		case words[0] == "u" && words[2] == "-":
			_, _, addErr := m.addUser(words[1])
			err = errors.Join(err, addErr)
		case words[0] == "m" && m.me == nil:
			err = errors.Join(err, m.appendMember(words[2], words[1]))
		case words[0] != "m":
			err = errors.Join(err, fmt.Errorf("the stand-in does not know %q", words))
		}
	}
	return err
}

func (m *machine) usermod(args []string) error {
	if len(args) != 4 || args[0] != "--append" || args[1] != "--groups" {
		return errUsage
	}
	if m.me != nil {
		return nil
	}
	return m.appendMember(args[2], args[3])
}

// appendMember makes a user one of a group, in place: the file may be a mount.
func (m *machine) appendMember(group, member string) error {
	text, err := os.ReadFile(m.named("/etc/group"))
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if fields := strings.Split(line, ":"); fields[0] == group {
			if fields[3] != "" {
				member = fields[3] + "," + member
			}
			lines[i] = strings.Join(append(fields[:3], member), ":")
		}
	}
	return os.WriteFile(m.named("/etc/group"), []byte(strings.Join(lines, "\n")), 0o644)
}

func (m *machine) tmpfiles(args []string) error {
	if len(args) != 2 || args[0] != "--create" {
		return errUsage
	}
	lines, err := m.fragment("lib/tmpfiles.d/" + args[1])
	if err != nil {
		return err
	}
	for _, words := range lines {
		mode, err := strconv.ParseUint(words[2], 8, 32)
		if err != nil || words[0] != "d" {
			return fmt.Errorf("the stand-in does not know %q", words)
		}
		uid, _, err := m.ids(words[3])
		if err != nil {
			return err
		}
		_, gid, err := m.ids(words[4])
		if err != nil {
			return err
		}
		path := m.path(words[1])
		err = errors.Join(os.MkdirAll(path, 0o755), os.Chown(path, uid, gid), os.Chmod(path, os.FileMode(mode)))
		if err != nil {
			return err
		}
	}
	return nil
}

// certbot issues a certificate as the authority that the machines trust, and runs the hook with what certbot gives it.
func (m *machine) certbot(args []string) error {
	var names []string
	var hook string
	for i, a := range args[:max(0, len(args)-1)] {
		switch a {
		case "-d":
			names = append(names, args[i+1])
		case "--deploy-hook":
			hook = args[i+1]
		}
	}
	if len(names) == 0 || hook == "" || args[0] != "certonly" {
		return errUsage
	}
	if program, _, _ := strings.Cut(hook, " "); m.find(program) == program { // certbot looks for it, too
		return fmt.Errorf("the hook begins with %s, which is no program", program)
	}
	pair, err := m.ca.Issue("certbot-"+names[0], append(slices.Compact(names), "127.0.0.1")...)
	if err != nil {
		return err
	}
	lineage := "etc/letsencrypt/live/" + names[0]
	if err := os.MkdirAll(m.path(lineage), 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{pair.CertFile: "fullchain.pem", pair.KeyFile: "privkey.pem"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(m.path(filepath.Join(lineage, to)), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	run := exec.Command("/bin/sh", "-e", "-c", hook)
	run.Env = append(m.environment(), "RENEWED_LINEAGE="+m.inside(lineage))
	if out, err := m.output(run); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// scp copies a file of another machine's. Where the page's names are replaced, that is the database server, and the path is
// already one of this machine's.
func (m *machine) scp(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	host, path, found := strings.Cut(args[0], ":")
	name, _, _ := strings.Cut(host, ".")
	if !m.apart {
		name = "db1"
	}
	path, inside := strings.CutPrefix(path, m.inside(""))
	if !found || !inside || m.others[name] == nil {
		return errUsage
	}
	text, err := os.ReadFile(m.others[name].path(path))
	if err != nil {
		return err
	}
	return os.WriteFile(m.named(args[1]), text, 0o600)
}

func (m *machine) systemctl(args []string) error {
	if len(args) == 1 && args[0] == "daemon-reload" {
		return m.services.load()
	}
	tryReload := func(name string) error {
		if m.services.pid(name) == 0 {
			return nil
		}
		return m.services.reload(name)
	}
	acts := map[string]func(string) error{
		"try-reload-or-restart": tryReload,
		"restart":               m.services.restart, "reload": m.services.reload, "stop": m.services.end, "start": m.services.start,
	}
	if act := acts[args[0]]; act != nil && len(args) > 1 {
		for _, name := range args[1:] {
			if err := act(name); err != nil {
				return err
			}
		}
		return nil
	}
	if len(args) < 3 || args[1] != "--now" || args[0] != "enable" && args[0] != "disable" {
		return errUsage
	}
	for _, name := range args[2:] {
		act := m.services.start
		if args[0] == "disable" {
			act = m.services.disable
		}
		if err := act(name); err != nil {
			return err
		}
	}
	return nil
}
