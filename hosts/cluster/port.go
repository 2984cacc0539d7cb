package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// PortInUseError says that something else listens where a child should.
type PortInUseError struct{ Address string }

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s is in use by another program", e.Address)
}

// FreePort returns a port of an address on which nothing listens. Another program can take it before the caller does.
func FreePort(host string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP {
		return 0, errors.Join(fmt.Errorf("%s is no TCP address", listener.Addr()), listener.Close())
	}
	return address.Port, listener.Close()
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
