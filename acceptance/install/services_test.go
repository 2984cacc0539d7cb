//go:build linux

package install

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// unit holds the values of each directive, in their order.
type unit map[string][]string

func (u unit) last(key, otherwise string) string {
	if all := u[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return otherwise
}

// services runs units as a service manager does, as far as the page relies on it: users, environment, folders, restarts, and the
// signals that they name.
type services struct {
	m *machine
	// debian are services of Debian's packages that run, and that nobody needs here.
	debian map[string]bool
	// ready says when a service of Debian's has started.
	ready map[string]func() bool

	mu      sync.Mutex
	units   map[string]unit
	running map[string]*service
}

type service struct {
	name  string
	unit  unit
	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // of cmd
	stop  bool
	done  chan struct{} // closed when it has ended and is not started again
}

func newServices(m *machine) *services {
	return &services{
		m: m, debian: map[string]bool{}, ready: map[string]func() bool{}, units: map[string]unit{}, running: map[string]*service{},
	}
}

// load reads the units that make install or a package has put below the machine's root.
func (s *services) load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := filepath.Glob(s.m.path("usr/local/lib/systemd/system/*.service"))
	packaged, _ := filepath.Glob(s.m.path("usr/lib/systemd/system/pgherd-*.service")) // the pattern is well formed
	found = append(found, packaged...)
	for _, path := range found {
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return readErr
		}
		u := unit{}
		for line := range strings.Lines(s.m.put(string(text))) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
				u[key] = append(u[key], value)
			}
		}
		s.units[strings.TrimSuffix(filepath.Base(path), ".service")] = u
	}
	return err
}

// newLauncher is a thread that stays: what it starts dies with its parent's thread, and has what that has.
func newLauncher() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
}

// on has a launcher do something.
func on(launcher chan<- func(), do func() error) (err error) {
	done := make(chan struct{})
	launcher <- func() { defer close(done); err = do() }
	<-done
	return err
}

func launch(launcher chan<- func(), cmd *exec.Cmd) error { return on(launcher, cmd.Start) }

// as is a command of a user's.
func (s *services) as(name, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.m.me == nil {
		if uid, gid, err := s.m.ids(name); err != nil {
			cmd.Err = err
		} else {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return cmd
}

func (s *services) start(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.units[name]
	if !known {
		return fmt.Errorf("there is no unit %s", name)
	}
	if s.running[name] != nil {
		return nil
	}
	one := &service{name: name, unit: u, done: make(chan struct{})}
	if err := s.spawn(one); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.running[name] = one
	go s.keep(one)
	for began := time.Now(); s.ready[name] != nil && !s.ready[name](); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > check.Patience {
			return fmt.Errorf("%s does not start", name)
		}
	}
	return nil
}

// spawn starts the process of a service.
func (s *services) spawn(one *service) error {
	u := one.unit
	cmd := s.as(u.last("User", ""), "/bin/sh", append([]string{
		"-c", `umask "$0"; ulimit -n "$1" 2> /dev/null || ulimit -n "$(ulimit -Hn)"; shift; exec "$@"`, u.last("UMask", "0022"),
		u.last("LimitNOFILE", "1024"),
	}, strings.Fields(u.last("ExecStart", ""))...)...)
	if cmd.SysProcAttr.Credential != nil {
		for _, group := range u["SupplementaryGroups"] {
			_, gid, err := s.m.ids(group)
			if err != nil {
				return err
			}
			cmd.SysProcAttr.Credential.Groups = append(cmd.SysProcAttr.Credential.Groups, uint32(gid))
		}
		cmd.SysProcAttr.Credential.Groups = append(cmd.SysProcAttr.Credential.Groups, s.m.memberships(u.last("User", ""))...)
	}
	cmd.Env = append(append(cmd.Env, s.m.settings()...), u["Environment"]...)
	if text, err := os.ReadFile(s.m.named(strings.TrimPrefix(u.last("EnvironmentFile", ""), "-"))); err == nil {
		cmd.Env = append(cmd.Env, strings.Fields(string(text))...)
	}
	if dir := u.last("RuntimeDirectory", ""); dir != "" {
		if err := s.runtimeDirectory(s.m.path("run/"+dir), u); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(s.m.path(one.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.stop {
		return nil
	}
	if err := s.m.launch(cmd); err != nil {
		return err
	}
	ended := make(chan struct{})
	one.cmd, one.ended = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }()
	return nil
}

// memberships are the groups that have a user as a member.
func (m *machine) memberships(user string) (groups []uint32) {
	text, _ := os.ReadFile(m.named("/etc/group")) // where there is none, nobody is a member
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) == 4 && slices.Contains(strings.Split(fields[3], ","), user) {
			if id, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
				groups = append(groups, uint32(id))
			}
		}
	}
	return groups
}

func (s *services) runtimeDirectory(path string, u unit) error {
	mode, err := strconv.ParseUint(u.last("RuntimeDirectoryMode", "0755"), 8, 32)
	if err != nil {
		return err
	}
	uid, _, err := s.m.ids(u.last("User", ""))
	if err != nil {
		return err
	}
	_, gid, err := s.m.ids(u.last("Group", ""))
	return errors.Join(err, os.RemoveAll(path), os.MkdirAll(path, 0o755), os.Chown(path, uid, gid),
		os.Chmod(path, os.FileMode(mode)))
}

// keep starts a service again as often as its unit says.
func (s *services) keep(one *service) {
	defer close(one.done)
	pause, _ := strconv.Atoi(one.unit.last("RestartSec", "0"))
	for {
		<-one.ended
		if one.unit.last("Restart", "no") != "always" {
			return
		}
		for ended := time.Now(); time.Since(ended) < time.Duration(pause)*time.Second; time.Sleep(20 * time.Millisecond) {
			if one.stopped() {
				return
			}
		}
		if err := s.spawn(one); err != nil || one.stopped() {
			return
		}
	}
}

func (one *service) stopped() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.stop
}

var signals = map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT}

// end stops a service by the signal of its unit, and kills it when its time is up.
func (s *services) end(name string) error {
	s.mu.Lock()
	one := s.running[name]
	delete(s.running, name)
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	signal, known := signals[one.unit.last("KillSignal", "SIGTERM")]
	limit, err := strconv.Atoi(one.unit.last("TimeoutStopSec", "90"))
	if !known || err != nil {
		return fmt.Errorf("%s: the stand-in does not know how it is stopped", name)
	}
	one.mu.Lock()
	one.stop = true
	_ = one.cmd.Process.Signal(signal) // it may have ended
	one.mu.Unlock()
	select {
	case <-one.ended:
	case <-time.After(time.Duration(limit) * time.Second):
		_ = one.cmd.Process.Kill()
		<-one.ended
	}
	<-one.done
	return nil
}

func (s *services) restart(name string) error { return errors.Join(s.end(name), s.start(name)) }

func (s *services) disable(name string) error {
	if s.debian[name] {
		s.debian[name] = false
		return nil
	}
	return s.end(name)
}

// reload runs what the unit says.
func (s *services) reload(name string) error {
	command := exec.Command("/bin/sh", "-c", s.units[name].last("ExecReload", "exit 1"))
	command.Env = []string{"MAINPID=" + strconv.Itoa(s.pid(name))}
	return command.Run()
}

// pid is the process of a service; 0 where it does not run.
func (s *services) pid(name string) int {
	s.mu.Lock()
	one := s.running[name]
	s.mu.Unlock()
	if one == nil {
		return 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	select {
	case <-one.ended:
		return 0
	default:
		return one.cmd.Process.Pid
	}
}

// endAll stops what runs, and what others need last.
func (s *services) endAll() (err error) {
	for _, name := range []string{
		"haproxy", "pgherd-dashboard", "pgherd-api", "pgherd-batch", "pgherd-agent", "pgherd-pooler", "postgresql@16-main",
	} {
		err = errors.Join(err, s.end(name))
	}
	return err
}
