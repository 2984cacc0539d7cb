//go:build linux

// Package machines gives processes what machines have of their own: a network that can be cut between two of them, a small disk,
// and a clock that jumps. It takes root, and a network and a mount namespace that end with the caller: nothing is left of what it
// makes.
package machines

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Network is a switch with machines at it. The caller is at the switch, too.
type Network struct {
	mu  sync.Mutex
	cut map[[2]string]int // how often each link is cut
	at  map[string]*Machine
}

// Machine is a network namespace with an address.
type Machine struct {
	Name, Address string
	namespace     *os.File
	mac           string // of its card
}

// Caller is the caller's address at the switch.
const Caller = "10.90.0.1"

// NewNetwork makes the switch. Other addresses lead to the caller as well, as public ones do to somebody elsewhere.
func NewNetwork(others ...string) (*Network, error) {
	n := &Network{cut: map[[2]string]int{}, at: map[string]*Machine{}}
	commands := []string{
		"ip link set lo up", "ip link add switch type bridge", "ip addr add " + Caller + "/24 dev switch", "ip link set switch up",
		// The caller looks whether ports are free on addresses that machines have.
		"echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind",
	}
	for _, address := range others {
		commands = append(commands, "ip addr add "+address+"/32 dev switch")
	}
	return n, system(commands...)
}

// system runs commands.
func system(commands ...string) error {
	for _, command := range commands {
		if out, err := exec.Command("/bin/sh", "-ec", command).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}

// Add makes a machine, with the next address.
func (n *Network) Add(name string) (*Machine, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &Machine{Name: name, Address: fmt.Sprintf("10.90.0.%d", 10+len(n.at))}
	if err := m.unshare(); err != nil {
		return nil, err
	}
	err := errors.Join(
		system(fmt.Sprintf("ip link add name %s type veth peer name eth0 netns /proc/%d/fd/%d", name, os.Getpid(), m.namespace.Fd()),
			"ip link set dev "+name+" up master switch"),
		m.Run("ip link set lo up; ip addr add "+m.Address+"/24 dev eth0; ip link set eth0 up; ip route add default via "+Caller))
	if err != nil {
		return nil, err
	}
	m.mac, err = m.card()
	n.at[name] = m
	return m, err
}

// unshare makes the namespace, on a thread that ends with that.
func (m *Machine) unshare() error {
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			m.namespace, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	return <-made
}

// card is the address of the machine's network card.
func (m *Machine) card() (string, error) {
	var found string
	err := m.within(func() error {
		card, err := net.InterfaceByName("eth0")
		if err == nil {
			found = card.HardwareAddr.String()
		}
		return err
	})
	return found, err
}

// Run runs a shell's commands on the machine.
func (m *Machine) Run(commands string) error {
	cmd := exec.Command("/bin/sh", "-ec", commands)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := m.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", commands, m.Name, err, out.String())
	}
	return nil
}

// Start starts a process on the machine. The calling goroutine keeps its thread, which is where it was afterwards.
func (m *Machine) Start(cmd *exec.Cmd) error { return m.within(cmd.Start) }

// within does something on a thread that is in the machine's network.
func (m *Machine) within(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	if err := unix.Setns(int(m.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	done := do()
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		panic(err) // whatever runs on this thread next would be on another machine
	}
	return done
}

// nobody's is a card that no machine has: what is sent there arrives nowhere, and nobody is told.
const nobodys = "02:00:00:00:00:99"

// Cut cuts the network between two machines: what one sends the other is lost. A link that was cut twice has to be healed twice.
func (n *Network) Cut(a, b string) error { return n.change(a, b, 1) }

// Heal ends Cut.
func (n *Network) Heal(a, b string) error { return n.change(a, b, -1) }

func (n *Network) change(a, b string, by int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	link := [2]string{min(a, b), max(a, b)}
	before := n.cut[link]
	n.cut[link] += by
	if (before > 0) == (n.cut[link] > 0) {
		return nil
	}
	return errors.Join(n.at[a].sends(n.at[b], before > 0), n.at[b].sends(n.at[a], before > 0))
}

// sends has what the machine sends another one arrive there, or nowhere.
func (m *Machine) sends(to *Machine, arrives bool) error {
	if arrives {
		return m.Run("ip neigh replace " + to.Address + " lladdr " + to.mac + " nud reachable dev eth0")
	}
	return m.Run("ip neigh replace " + to.Address + " lladdr " + nobodys + " nud permanent dev eth0")
}
