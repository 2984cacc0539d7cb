package main

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

const unitDir = "systemd"

// unit holds the values of each directive of a unit file, in their order.
type unit map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	u := unit{}
	if filepath.Ext(name) == "" {
		name += ".service"
	}
	for line := range strings.Lines(string(check.Must(os.ReadFile(filepath.Join(unitDir, name)))(t))) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			u[key] = append(u[key], value)
		}
	}
	return u
}

// one is the value of a directive that occurs once.
func (u unit) one(t *testing.T, key string) string {
	t.Helper()
	if len(u[key]) != 1 {
		t.Fatalf("%s occurs %d times", key, len(u[key]))
	}
	return u[key][0]
}

func (u unit) number(t *testing.T, key string) int {
	t.Helper()
	return check.Must(strconv.Atoi(u.one(t, key)))(t)
}

func (u unit) environment() map[string]string {
	out := map[string]string{}
	for _, e := range u["Environment"] {
		name, value, _ := strings.Cut(e, "=")
		out[name] = value
	}
	return out
}

// hosts are the units that run pgherd, by the command's name.
var hosts = []string{"api", "batch", "dashboard", "agent"}

// command is what a unit runs, with what its ExecStart and its environment set. What stands in files is not read.
func (u unit) command(t *testing.T) *cobra.Command {
	t.Helper()
	words := strings.Fields(u.one(t, "ExecStart"))
	if words[0] != "/usr/local/bin/pgherd" {
		t.Errorf("%s is not what make install installs and puts its own path in place of", words[0])
	}
	cmd, rest, err := cli.Root().Find(words[1:])
	check.NoError(t, err)
	check.NoError(t, cmd.ParseFlags(rest))
	flags := map[string]*pflag.Flag{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags[settings.Variable(f.Name)] = f })
	for name, value := range u.environment() {
		if f := flags[name]; f != nil {
			check.NoError(t, cmd.Flags().Set(f.Name, value))
		} else if f := flags[strings.TrimSuffix(name, "_FILE")]; f == nil || !filepath.IsAbs(value) {
			t.Errorf("%s=%s sets nothing", name, value)
		}
	}
	return cmd
}

func flag(t *testing.T, cmd *cobra.Command, name string) string {
	t.Helper()
	f := cmd.Flags().Lookup(name)
	if f == nil {
		t.Fatalf("%s has no flag --%s", cmd.Name(), name)
	}
	return f.Value.String()
}

func intFlag(t *testing.T, cmd *cobra.Command, name string) int {
	t.Helper()
	return check.Must(strconv.Atoi(flag(t, cmd, name)))(t)
}

func TestUnitsRunWhatTheyName(t *testing.T) {
	for _, name := range hosts {
		u := readUnit(t, "pgherd-"+name)
		cmd := u.command(t)
		if cmd.Name() != name {
			t.Errorf("%s runs %s", name, cmd.Name())
		}
		if got := u.one(t, "EnvironmentFile"); got != "-/etc/pgherd/"+name+".env" {
			t.Errorf("%s: its settings stand in %s", name, got)
		}
		if got := u.one(t, "SyslogIdentifier"); got != "%N" {
			t.Errorf("%s: its lines are called %s, and log shippers look for the unit's name", name, got)
		}
	}
	for _, name := range []string{"api", "dashboard", "agent"} {
		// Without an address, it is all of IPv6 and of IPv4: 0.0.0.0 is of IPv4 alone.
		listen := flag(t, readUnit(t, "pgherd-"+name).command(t), "listen")
		if host, _, err := net.SplitHostPort(listen); err != nil || host != "" {
			t.Errorf("%s listens on %s, where not all addresses of the machine reach it", name, listen)
		}
	}
	for _, name := range []string{"api", "dashboard"} {
		u := readUnit(t, "pgherd-"+name)
		cmd := u.command(t)
		if got := u.number(t, "LimitNOFILE"); got <= intFlag(t, cmd, "max-connections") {
			t.Errorf("%s may open %d files", name, got)
		}
		grace := check.Must(time.ParseDuration(flag(t, cmd, "shutdown-grace")))(t)
		if got := u.number(t, "TimeoutStopSec"); got <= int(grace.Seconds()) {
			t.Errorf("%s is killed after %d s, and lets requests take %s", name, got, grace)
		}
	}
	agent := readUnit(t, "pgherd-agent")
	if got := agent.number(t, "TimeoutStopSec"); got <= 20 {
		t.Errorf("the agent is killed after %d s, and waits 20 s for backups", got)
	}
	if kill, oom := agent.one(t, "KillMode"), agent.one(t, "OOMPolicy"); kill != "mixed" || oom != "continue" {
		t.Errorf("what becomes of pg_dump becomes of the agent, or the other way: %s, %s", kill, oom)
	}
}

// PgBouncer and the agent share files and a socket, and nobody else has them.
func TestPoolerUnitAndAgentShareFiles(t *testing.T) {
	agent, bouncer := readUnit(t, "pgherd-agent"), readUnit(t, "pgherd-pooler")
	cmd := agent.command(t)
	start := strings.Fields(bouncer.one(t, "ExecStart"))
	if want := pooler.ConfigFile(flag(t, cmd, "pooler-dir")); len(start) != 2 || start[1] != want {
		t.Errorf("PgBouncer is started with %q, and the agent writes %s", start, want)
	}
	group := flag(t, cmd, "pooler-group")
	for what, got := range map[string]string{
		"the group": bouncer.one(t, "Group"), "a group of the agent": agent.one(t, "SupplementaryGroups"),
	} {
		if got != group {
			t.Errorf("%s is %s, and the agent gives files to %s", what, got, group)
		}
	}
	if got := "/run/" + bouncer.one(t, "RuntimeDirectory"); got != flag(t, cmd, "pooler-socket-dir") {
		t.Errorf("the socket stands in %s", got)
	}
	if agent.one(t, "User") == bouncer.one(t, "User") {
		t.Error("PgBouncer runs as the agent: it could read backups")
	}
	for _, name := range []string{"pooler-dir", "backup-dir"} {
		if dir := flag(t, cmd, name); !slices.ContainsFunc(strings.Fields(agent.one(t, "ReadWritePaths")), func(p string) bool {
			return dir == p || strings.HasPrefix(dir, p+"/")
		}) {
			t.Errorf("the agent cannot write in %s", dir)
		}
	}
	for key, want := range map[string]string{
		"KillSignal": "SIGQUIT", "TimeoutStopSec": "10", "RuntimeDirectoryMode": "0750",
	} {
		if got := bouncer.one(t, key); got != want {
			t.Errorf("%s=%s of PgBouncer, not %s", key, got, want)
		}
	}
	if got, least := bouncer.one(t, "MemoryMax"), intFlag(t, cmd, "pooler-memory"); got != "4G" || least > 2<<30 {
		t.Errorf("PgBouncer is killed at %s, and its clients are ended at %d", got, least)
	}
	if got, clients := bouncer.number(t, "LimitNOFILE"), intFlag(t, cmd, "pooler-max-clients"); got < 2*clients {
		t.Errorf("PgBouncer may open %d files for %d clients and their server connections", got, clients)
	}
}

// What the agent asks for where it may not kill PgBouncer is done by units that run whenever PgBouncer's does.
func TestPoolerUnitsEndWhatHangs(t *testing.T) {
	dir := flag(t, readUnit(t, "pgherd-agent").command(t), "pooler-dir")
	bouncer, watch, end := readUnit(t, "pgherd-pooler"), readUnit(t, "pgherd-pooler-hangs.path"), readUnit(t, "pgherd-pooler-hangs")
	if got := strings.Fields(bouncer.one(t, "Wants")); !slices.Contains(got, "pgherd-pooler-hangs.path") {
		t.Errorf("PgBouncer's unit wants %q", got)
	}
	for _, c := range []struct{ what, got, want string }{
		{"it runs as long as", watch.one(t, "PartOf"), "pgherd-pooler.service"},
		{"it looks for", watch.one(t, "PathExists"), pooler.HangFile(dir)},
		{"it does", strings.Join(end["ExecStart"], "; "), "/bin/rm -f " + pooler.HangFile(dir) +
			"; /bin/systemctl kill --signal=SIGKILL pgherd-pooler.service"},
		{"it may write in", end.one(t, "ReadWritePaths"), dir},
		{"it ends", end.one(t, "Type"), "oneshot"},
	} {
		if c.got != c.want {
			t.Errorf("%s %s, not %s", c.what, c.got, c.want)
		}
	}
}

// hardened are directives that each unit has.
var hardened = map[string]string{
	"Type": "exec", "Restart": "always", "StartLimitIntervalSec": "0", "ExecReload": "/bin/kill -HUP $MAINPID",
	"UMask": "0077", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "",
	"ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
	"ProtectKernelTunables": "yes", "ProtectKernelModules": "yes", "ProtectKernelLogs": "yes", "ProtectControlGroups": "yes",
	"ProtectClock": "yes", "ProtectHostname": "yes", "RestrictNamespaces": "yes", "RestrictRealtime": "yes",
	"RestrictSUIDSGID": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "LockPersonality": "yes",
	"MemoryDenyWriteExecute": "yes", "RemoveIPC": "yes", "KeyringMode": "private", "SystemCallArchitectures": "native",
	// What the filter stops is an error and no kill: programs ask for limits that they can do without.
	"SystemCallErrorNumber": "EPERM",
}

func TestUnitsAreHardened(t *testing.T) {
	accounts := string(check.Must(os.ReadFile(filepath.Join(unitDir, "sysusers.conf")))(t))
	for _, name := range []string{"api", "batch", "agent", "pooler"} {
		u := readUnit(t, "pgherd-"+name)
		for _, key := range slices.Sorted(maps.Keys(hardened)) {
			if got := u.one(t, key); got != hardened[key] {
				t.Errorf("%s: %s=%s, not %s", name, key, got, hardened[key])
			}
		}
		if !slices.Contains(u["SystemCallFilter"], "~@privileged @resources") {
			t.Errorf("%s: the system calls are %q", name, u["SystemCallFilter"])
		}
		who := u.one(t, "User")
		if !regexp.MustCompile(`(?m)^u ` + regexp.QuoteMeta(who) + ` `).MatchString(accounts) {
			t.Errorf("%s runs as %s, whom sysusers.conf does not make", name, who)
		}
	}
}

// systemd finds no fault, and says the same of how far the units are shut in. Where there is no systemd, what it would see is
// what TestUnitsAreHardened demands.
func TestSystemdAgrees(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	hangs := []string{analyze, "verify", "--man=no"}
	for _, name := range []string{"pgherd-pooler-hangs.path", "pgherd-pooler-hangs.service"} {
		hangs = append(hangs, check.Must(filepath.Abs(filepath.Join(unitDir, name)))(t))
	}
	if out, err := exec.CommandContext(t.Context(), hangs[0], hangs[1:]...).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "pgherd-pooler-hangs") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	for _, name := range []string{"api", "batch", "agent", "pooler"} {
		text := check.Must(os.ReadFile(filepath.Join(unitDir, "pgherd-"+name+".service")))(t)
		// The programs need not be on this machine.
		text = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(text, []byte("ExecStart=/bin/true"))
		file := filepath.Join(t.TempDir(), "pgherd-"+name+".service")
		check.NoError(t, os.WriteFile(file, text, 0o600))
		for _, args := range [][]string{{"verify", "--man=no"}, {"security", "--offline=true", "--threshold=30", "--no-pager"}} {
			out, err := exec.CommandContext(t.Context(), analyze, append(args, file)...).CombinedOutput()
			if err != nil || args[0] == "verify" && strings.Contains(string(out), file) {
				t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
			}
		}
	}
}

// What the fragments make is what they say, as systemd reads them. Only root can give folders to users.
func TestSystemdMakesUsersAndFolders(t *testing.T) {
	sysusers, usersErr := exec.LookPath("systemd-sysusers")
	tmpfiles, foldersErr := exec.LookPath("systemd-tmpfiles")
	if usersErr != nil || foldersErr != nil {
		return
	}
	root := t.TempDir()
	check.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	here := check.Must(filepath.Abs(unitDir))(t)
	out, err := exec.CommandContext(t.Context(), sysusers, "--root="+root, filepath.Join(here, "sysusers.conf")).CombinedOutput()
	groups := string(check.Must(os.ReadFile(filepath.Join(root, "etc", "group")))(t))
	if err != nil || !regexp.MustCompile(`(?m)^pgbouncer:.*:pgherd-agent$`).MatchString(groups) {
		t.Errorf("%v\n%s\n%s", err, out, groups)
	}
	create := exec.CommandContext(t.Context(), tmpfiles, "--root="+root, "--create", filepath.Join(here, "tmpfiles.conf"))
	out, err = create.CombinedOutput()
	if err != nil && os.Getuid() == 0 {
		t.Errorf("%v\n%s", err, out)
	}
	for path, mode := range map[string]os.FileMode{"etc/pgherd/pooler": 0o750, "var/lib/pgherd-agent/backups": 0o700} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v\n%s", path, info, err, out)
		}
	}
}

// The folders that units and sysusers.conf speak of are made by tmpfiles.conf, for whoever uses them.
func TestFoldersAreMade(t *testing.T) {
	made := map[string][]string{}
	for line := range strings.Lines(string(check.Must(os.ReadFile(filepath.Join(unitDir, "tmpfiles.conf")))(t))) {
		if words := strings.Fields(line); words[0] == "d" {
			made[words[1]] = words[2:5]
		}
	}
	owned := func(path string, want ...string) {
		t.Helper()
		if got := made[path]; !slices.Equal(got, want) {
			t.Errorf("%s is made with %q, not %q", path, got, want)
		}
	}
	for _, name := range hosts {
		u := readUnit(t, "pgherd-"+name)
		who := u.one(t, "User")
		for variable, path := range u.environment() {
			switch {
			case strings.HasPrefix(path, "/etc/pgherd/pooler/"):
				owned(filepath.Dir(path), "0750", "root", "pgbouncer")
			case strings.HasPrefix(path, "/etc/pgherd/"):
				owned(filepath.Dir(path), "0700", who, who)
			case variable == "PGHERD_POOLER_DIR":
				owned(path, "0750", who, u.one(t, "SupplementaryGroups"))
			case strings.HasPrefix(path, "/var/lib/pgherd"):
				owned(path, "0700", who, who)
			}
		}
	}
}
