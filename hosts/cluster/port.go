package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// PortInUseError says that something else listens where a child should.
type PortInUseError struct{ Address string }

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s is in use by another program", e.Address)
}

// Free ports come from below those that Linux and macOS give to outgoing connections: such a connection could hold the port just
// when a child starts, or starts again.
const lowestPort, ports = 20000, 12000

// freePortLooks bounds how many ports are looked at.
const freePortLooks = 1000

// reserved are the UDP sockets that mark ports as given away. Nobody speaks UDP on them: a socket is a mark that every process on
// the machine sees, and that ends with this one.
var reserved struct {
	sync.Mutex
	marks []net.PacketConn
}

// FreePort returns a TCP port of an address on which nothing listens. As long as this process lives, no other call returns it, in
// this or another process on the machine, so that what listens there may end and start again.
func FreePort(host string) (int, error) {
	var err error
	for range freePortLooks {
		port := lowestPort + rand.IntN(ports) //nolint:gosec // a port is no secret
		if err = reserve(host, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found on %s: %w", host, err)
}

func reserve(host string, port int) error {
	mark, err := net.ListenPacket("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	if err := CheckPort(host, port); err != nil {
		return errors.Join(err, mark.Close())
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.marks = append(reserved.marks, mark)
	return nil
}

// CheckPort returns a *PortInUseError when something listens on the address already.
func CheckPort(host string, port int) error {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &PortInUseError{Address: address}
	}
	if err != nil {
		return err
	}
	return listener.Close()
}
