package serve

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Prefix is the path prefix under which every request needs a key, whether its route exists or not, except for the public
// routes.
const Prefix = "/api/v1"

// serveUnmatched answers what no route serves: ROUTE_NOT_FOUND, or METHOD_NOT_ALLOWED with Allow for a path that has
// routes of other methods. Under /api/v1 only a valid key learns which.
func (s *Server) serveUnmatched(r *Request) error {
	path := string(r.raw.URI().PathOriginal())
	allowed, public := s.methodsOf(path)
	if under(path, Prefix) && !public {
		r.route = &unmatchedKeyed
		defer func() { r.route = nil }()
		if err := s.admit(r); err != nil {
			return err
		}
	}
	if len(allowed) == 0 {
		return fault.New(fault.RouteNotFound, "there is no such route")
	}
	r.raw.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(allowed, ", "))
	return fault.New(fault.MethodNotAllowed, "this route accepts %s", strings.Join(allowed, ", "))
}

// unmatchedKeyed is the rule for a path without a route: any valid key, counted as a read.
var unmatchedKeyed = Route{Class: ratelimit.Read, Key: validKey}

func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func (s *Server) methodsOf(path string) (methods []string, public bool) {
	for i := range s.routes {
		if route := &s.routes[i]; matches(route.Path, path) {
			methods = append(methods, route.Method)
			public = public || route.Key == Public
		}
	}
	slices.Sort(methods)
	return methods, public
}
