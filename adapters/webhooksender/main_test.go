package webhooksender

import (
	"net"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// proxied counts connections to the proxy that the environment of the tests names.
var proxied atomic.Int64

func TestMain(m *testing.M) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			proxied.Add(1)
			conn.Close()
		}
	}()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		if err := os.Setenv(name, "http://"+proxy.Addr().String()); err != nil {
			panic(err)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	proxy.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
