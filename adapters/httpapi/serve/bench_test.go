package serve

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"
)

// BenchmarkGet measures the front alone against net/http's bare handler, over the loopback with eight clients.
func BenchmarkGet(b *testing.B) {
	b.Run("net_http", func(b *testing.B) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(renamed{ID: knownID})
		}))
		defer srv.Close()
		hammer(b, srv.Listener.Addr())
	})
	b.Run("httpapi", func(b *testing.B) {
		st := open(b, func(c *Config) { c.Log = zap.New(discardCore()) })
		addr, err := net.ResolveTCPAddr("tcp", st.address)
		if err != nil {
			b.Fatal(err)
		}
		hammer(b, addr)
	})
}

func hammer(b *testing.B, addr net.Addr) {
	request := []byte(head("GET", thing, anyKey))
	b.ReportAllocs()
	b.SetParallelism(4) // times two cores
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		answer := make([]byte, 4096)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if n, err := c.Read(answer); err != nil || n < 100 || string(answer[9:12]) != "200" {
				b.Errorf("%q %v", answer[:n], err)
				return
			}
		}
	})
}
