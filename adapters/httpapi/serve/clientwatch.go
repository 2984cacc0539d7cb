package serve

import (
	"net"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
)

// glance is how often a waiting request looks whether its client is still there.
const glance = 200 * time.Millisecond

// statusClientLeft is the status, in log and metrics, of a request whose client left before its answer; nobody receives it.
const statusClientLeft = 499

// WhileClientStays answers with what a search has found that may wait, as long as the client does.
func WhileClientStays[T any](search func(*Request) (T, error), answer func(T) (Answer, error)) Handler {
	return func(r *Request) (Answer, error) {
		var found T
		left, err := r.whileClientStays(func() (err error) {
			found, err = search(r)
			return err
		})
		switch {
		case err != nil && left:
			return Answer{Status: statusClientLeft}, nil
		case err != nil:
			return Answer{}, err
		}
		return answer(found)
	}
}

// whileClientStays runs do, and ends the request's context if the client leaves meanwhile; left reports that it did.
func (r *Request) whileClientStays(do func() error) (left bool, err error) {
	client, over := r.raw.Conn(), make(chan struct{})
	gone := make(chan bool, 1)
	go func() {
		left := awaitsLeaving(client, over)
		if left {
			r.cancel()
		}
		gone <- left
	}()
	defer func() { // also where do panics
		close(over)
		left = <-gone
	}()
	return false, do()
}

// awaitsLeaving looks until the client has left or the request needs the answer no more.
func awaitsLeaving(c net.Conn, over <-chan struct{}) bool {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return false
		case <-tick.C:
		}
		if conn.HasLeft(c) {
			return true
		}
	}
}
