//go:build monitoring && linux

package monitoring

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// machine is a root with the programs, and with the examples where these say that they go.
type machine struct{ root string }

// newMachine makes one that trusts an authority.
func newMachine(t *testing.T, authority string) machine {
	t.Helper()
	from := filepath.Join(check.Must(toolchain.Folder(toolchain.Monitoring))(t), "root")
	m := machine{stacktest.Dir(t)}
	// The programs are not copied: the folder is that of the toolchain, which nothing here can write to.
	const read = syscall.MS_BIND | syscall.MS_RDONLY
	check.NoError(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	check.NoError(t, os.Mkdir(m.path("usr"), 0o755))
	check.NoError(t, syscall.Mount(filepath.Join(from, "usr"), m.path("usr"), "", syscall.MS_BIND, ""))
	t.Cleanup(func() { check.NoError(t, syscall.Unmount(m.path("usr"), syscall.MNT_DETACH)) })
	check.NoError(t, syscall.Mount("", m.path("usr"), "", read|syscall.MS_REMOUNT, ""))
	check.NoError(t, os.Mkdir(m.path("dev"), 0o755))
	for name, number := range map[string]int{"null": 1<<8 | 3, "urandom": 1<<8 | 9} {
		check.NoError(t, syscall.Mknod(m.path("dev/"+name), syscall.S_IFCHR|0o666, number))
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		check.NoError(t, os.Symlink("usr/"+dir, m.path(dir)))
	}
	for _, dir := range []string{"etc", "var"} {
		check.NoError(t, os.CopyFS(m.path(dir), os.DirFS(filepath.Join(from, dir))))
	}
	for _, dir := range []string{"tmp", "run", "var/spool/rsyslog", "var/log", "etc/ssl/certs"} {
		check.NoError(t, os.MkdirAll(m.path(dir), 0o755))
	}
	var hosts strings.Builder
	for name, address := range addresses {
		hosts.WriteString(address + " " + name + "\n")
	}
	for path, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/:/bin/sh\n", "etc/group": "root:x:0:\nadm:x:4:\n", "etc/hosts": hosts.String(),
		"etc/ssl/certs/ca-certificates.crt": string(check.Must(os.ReadFile(authority))(t)),
	} {
		check.NoError(t, os.WriteFile(m.path(path), []byte(text), 0o644))
	}
	for example, path := range map[string]string{
		"prometheus.yml": "etc/prometheus/prometheus.yml", "alerts.yml": "etc/prometheus/pgherd-alerts.yml",
		"alertmanager.yml": "etc/prometheus/alertmanager.yml", "rsyslog.conf": "etc/rsyslog.d/30-pgherd.conf",
	} {
		text := check.Must(os.ReadFile("../../docs/operate/" + example))(t)
		check.NoError(t, os.MkdirAll(filepath.Dir(m.path(path)), 0o755))
		check.NoError(t, os.WriteFile(m.path(path), text, 0o644))
	}
	return m
}

func (m machine) path(inside string) string { return filepath.Join(m.root, inside) }

// start runs a program there until the end of the test, and shows what it said where that fails.
func (m machine) start(t *testing.T, program string, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	said := &output{}
	c.SysProcAttr, c.Dir, c.Env = &syscall.SysProcAttr{Chroot: m.root}, "/", []string{"PATH=/usr/sbin:/usr/bin", "LC_ALL=C.UTF-8"}
	c.Stdout, c.Stderr = said, said
	check.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", program, said)
		}
	})
}

// output is what a program says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// journal passes a host's log lines to rsyslog in the form in which systemd's journal does, under the name of its unit. Nobody
// hands a socket to rsyslog here, so it has made its own.
func (m machine) journal(t *testing.T, unit string, p *stack.Process) {
	t.Helper()
	var socket net.Conn
	check.Eventually(t, "rsyslog to take lines", func() (up bool) {
		var err error
		socket, err = net.Dial("unixgram", m.path("dev/log"))
		return err == nil
	})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for sent := 0; ; {
			text, _ := p.Log()
			for {
				line, _, whole := bytes.Cut(text[sent:], []byte("\n"))
				if !whole {
					break
				}
				sent += len(line) + 1
				_, _ = io.WriteString(socket, "<30>"+time.Now().Format("Jan _2 15:04:05 ")+unit+"[1]: "+string(line))
			}
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended; _ = socket.Close() })
}

// forward passes connections on to another address.
func forward(ln net.Listener, to string) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
			_, _ = io.Copy(in, out)
		}()
	}
}
