package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

func TestWhatLeavesOpenWhetherSomethingWasDone(t *testing.T) {
	answer := func(status int, code fault.Code) error {
		return fmt.Errorf("create: %w", &apiclient.Error{Status: status, ErrorBody: wire.ErrorBody{Code: code}})
	}
	for _, c := range []struct {
		err  error
		open bool
	}{
		{nil, false},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, true},
		{errTimeout, true},
		{answer(500, fault.InternalError), true},
		{answer(500, fault.AgentError), true},
		{answer(504, ""), true},
		{errors.Join(answer(429, fault.RateLimited), context.DeadlineExceeded), true},
		{answer(503, fault.Maintenance), false},
		{answer(409, fault.DatabaseStateConflict), false},
		{answer(302, ""), false},
		{errors.New("the answer is of another form"), false},
	} {
		a := &App{}
		if a.unsure(c.err) {
			t.Errorf("%v: it is open, although nothing was sent", c.err)
		}
		a.sent.Store(true)
		if a.unsure(c.err) != c.open {
			t.Errorf("%v: open is %v", c.err, !c.open)
		}
	}
}

// What only asks, and what reaches nobody, has not been sent.
func TestWhichRequestsAreSent(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		method, url string
		want        bool
	}{
		{http.MethodGet, server.URL, false},
		{http.MethodPost, gone.URL, false},
		{http.MethodPost, server.URL, true},
		{http.MethodDelete, server.URL, true},
	} {
		var sent atomic.Bool
		client := http.Client{Transport: sending{http.DefaultTransport, &sent}}
		if answer, err := client.Do(check.Must(http.NewRequestWithContext(t.Context(), c.method, c.url, nil))(t)); err == nil {
			check.NoError(t, answer.Body.Close())
		}
		if sent.Load() != c.want {
			t.Errorf("%s %s: sent is %v", c.method, c.url, sent.Load())
		}
	}
}
