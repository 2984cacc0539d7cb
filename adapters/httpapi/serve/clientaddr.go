package serve

import (
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/guests"
)

// clientAddress is the socket's address or, if that is a configured proxy, the last hop in X-Forwarded-For, which the proxy
// wrote. Earlier hops come from the client and are not trusted.
func clientAddress(raw *fasthttp.RequestCtx, proxies []netip.Prefix) netip.Addr {
	socket := guests.AddressOf(raw.RemoteAddr())
	if !conn.Within(socket, proxies) {
		return socket
	}
	lines := raw.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)
	if len(lines) == 0 {
		return socket
	}
	last := string(lines[len(lines)-1])
	hop := strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	if a, ok := parseHop(hop); ok {
		return a
	}
	return socket
}

// parseHop accepts an address with or without a port.
func parseHop(hop string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddrPort(hop)
	return a.Addr().Unmap().WithZone(""), err == nil
}
