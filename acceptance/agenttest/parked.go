package agenttest

import (
	"context"
	"net"
	"time"
)

// parking is a connection that waits before its n-th write, so that a log-in stands still in the middle.
type parking struct {
	net.Conn
	writes, at      int
	parked, release chan struct{}
}

func (p *parking) Write(b []byte) (int, error) {
	p.writes++
	if p.writes == p.at {
		close(p.parked)
		<-p.release
	}
	return p.Conn.Write(b)
}

// ParkingDialer dials one connection that stands still before its At-th write, which closes Parked, until Release is closed.
type ParkingDialer struct {
	At              int
	Parked, Release chan struct{}
}

// Dial implements pq.Dialer.
func (d ParkingDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (d ParkingDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext.
func (d ParkingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &parking{Conn: c, at: d.At, parked: d.Parked, release: d.Release}, err
}
