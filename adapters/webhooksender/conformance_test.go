package webhooksender

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/conformance"
)

func TestConformance(t *testing.T) {
	conformance.WebhookSender(t, func(t *testing.T) conformance.SenderFixture {
		return conformance.SenderFixture{Sender: local(t, 700*time.Millisecond), Receive: startReceiver, Strict: strict(t)}
	})
}

// strict has the policy of production, and names that resolve to what the suite wants.
func strict(t *testing.T) *Sender {
	return newSender(t, Options{Timeout: 2 * time.Second, Resolver: &names{answers: map[string][][]netip.Addr{
		"public.example.com.":  {addresses("8.8.8.8", "2606:4700:4700::1111")},
		"private.example.com.": {addresses("10.0.0.1")},
		"mixed.example.com.":   {addresses("8.8.8.8", "10.0.0.1")},
	}}})
}

func startReceiver(t *testing.T, reply conformance.Reply) conformance.Receiver {
	var (
		mu   sync.Mutex
		list []conformance.Arrival
	)
	r := receive(t, nil, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		headers := map[string]string{}
		for name := range req.Header {
			headers[name] = req.Header.Get(name)
		}
		mu.Lock()
		list = append(list, conformance.Arrival{Headers: headers, Body: body})
		mu.Unlock()
		answer(reply)(w, req)
	})
	return conformance.Receiver{URL: r.URL + "/hook", Arrivals: func() []conformance.Arrival {
		mu.Lock()
		defer mu.Unlock()
		return append([]conformance.Arrival{}, list...)
	}}
}

func answer(reply conformance.Reply) http.HandlerFunc {
	switch {
	case reply.Silent:
		return silent
	case reply.Reset:
		return raw(reset)
	case reply.Endless:
		return raw(func(conn net.Conn) {
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
			for err == nil {
				_, err = conn.Write(make([]byte, 1<<10))
			}
		})
	default:
		return status(reply.Status)
	}
}
