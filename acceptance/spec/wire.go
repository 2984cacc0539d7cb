package spec

import "net/http"

// Wire sends requests as they are, good or bad.
type Wire interface {
	// Routes is the table of routes.
	Routes() []Route
	Send(r Request) (Answer, error)
}

// Route is one row of the table of routes, without what only the service needs to know.
type Route struct {
	Method, Path string
	FullAccount  bool   // full-account keys only
	Target       string // what the first parameter names: "database", "operation", "webhook" or ""
	JSON         bool   // takes a JSON body
}

func (r Route) String() string { return r.Method + " " + r.Path }

// Request is an HTTP request. Without a Key it has no Authorization header.
type Request struct {
	Method, Path string
	Key          string
	From         string // the client's address, as the service's proxy tells it
	Header       map[string]string
	Body         []byte
}

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}
