//go:build linux && soak

package machines

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// program says the time until its input ends.
const program = `package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(time.Now().UnixNano())
	}
}
`

// A clock jumps while a program runs that was built for that, forward and back; and a program without a clock has the right time.
func TestAClockJumps(t *testing.T) {
	dir := t.TempDir()
	overlay := check.Must(Overlay(dir))(t)
	source, built := filepath.Join(dir, "main.go"), filepath.Join(dir, "said")
	check.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", built, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	clock := check.Must(NewClock(filepath.Join(dir, "clock")))(t)
	ask := says(t, built, ClockVariable+"="+clock.File)
	for _, jump := range []time.Duration{0, 40 * 24 * time.Hour, -41 * 24 * time.Hour, 24 * time.Hour} {
		check.NoError(t, clock.Jump(jump))
		if off := ask().Sub(time.Now().Add(clock.off)).Abs(); off > time.Second {
			t.Errorf("after a jump of %s, the clock is %s off", jump, off)
		}
	}
	if off := time.Since(says(t, built)()).Abs(); off > time.Second {
		t.Errorf("without a clock, the time is %s off", off)
	}
}

// says starts the program, and returns what asks it for the time.
func says(t *testing.T, built string, variables ...string) func() time.Time {
	t.Helper()
	cmd := exec.Command(built)
	cmd.Env = variables
	in, out := check.Must(cmd.StdinPipe())(t), check.Must(cmd.StdoutPipe())(t)
	check.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); check.NoError(t, cmd.Wait()) })
	return func() time.Time {
		check.Must(in.Write([]byte("\n")))(t)
		line := make([]byte, 64)
		n := check.Must(out.Read(line))(t)
		nanoseconds, err := time.ParseDuration(strings.TrimSpace(string(line[:n])) + "ns")
		check.NoError(t, err)
		return time.Unix(0, int64(nanoseconds))
	}
}

// insideVariable is set in the process that has namespaces of its own.
const insideVariable = "SOAK_MACHINES_INSIDE"

// Of three machines, two cannot reach each other while the network between them is cut. A small disk is full while it is filled.
func TestMachinesAreDisturbed(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		const first = `mount --make-rprivate / && exec "$0" -test.v "-test.run=^TestMachinesAreDisturbed$"`
		again := exec.Command("/bin/sh", "-c", first, os.Args[0])
		again.Env = append(os.Environ(), insideVariable+"=yes")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	network := check.Must(NewNetwork())(t)
	a, b, c := check.Must(network.Add("a"))(t), check.Must(network.Add("b"))(t), check.Must(network.Add("c"))(t)
	check.NoError(t, network.Cut("a", "b"))
	check.NoError(t, network.Cut("b", "a")) // another disturbance's, which lasts longer
	check.NoError(t, network.Heal("a", "b"))
	for _, one := range []struct {
		from, to *Machine
		reaches  bool
	}{{a, b, false}, {b, a, false}, {a, c, true}, {c, b, true}} {
		if reaches := one.from.reaches(t, one.to); reaches != one.reaches {
			t.Errorf("%s reaches %s: %t", one.from.Name, one.to.Name, reaches)
		}
	}
	check.NoError(t, network.Heal("a", "b"))
	if !a.reaches(t, b) || !b.reaches(t, a) {
		t.Error("a healed network is still cut")
	}
	disk := check.Must(NewDisk(filepath.Join(t.TempDir(), "disk"), 1<<20))(t)
	t.Cleanup(func() { check.NoError(t, syscall.Unmount(disk.Dir, 0)) })
	writes := func() error { return os.WriteFile(filepath.Join(disk.Dir, "file"), make([]byte, 1<<16), 0o600) }
	check.NoError(t, disk.Fill())
	if err := writes(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk says %v", err)
	}
	check.NoError(t, disk.Free())
	check.NoError(t, writes())
}

// reaches reports whether one machine connects to another one within a moment. That nobody listens there is said by it.
func (m *Machine) reaches(t *testing.T, to *Machine) (reached bool) {
	t.Helper()
	check.NoError(t, m.within(func() error {
		address := syscall.SockaddrInet4{Port: 9, Addr: [4]byte(net.ParseIP(to.Address).To4())}
		socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(socket)
		limit := syscall.Timeval{Sec: 2}
		if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
			return err
		}
		err = syscall.Connect(socket, &address)
		reached = err == nil || errors.Is(err, syscall.ECONNREFUSED)
		return nil
	}))
	return reached
}
