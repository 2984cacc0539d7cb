package serve

import (
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/guests"
)

// clientAddress is the address of the client of a request.
func clientAddress(raw *fasthttp.RequestCtx, proxies []netip.Prefix) netip.Addr {
	var lines []string
	for _, line := range raw.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor) {
		lines = append(lines, string(line))
	}
	return guests.ClientOf(guests.AddressOf(raw.RemoteAddr()), lines, proxies)
}
