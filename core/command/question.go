package command

// Question is a request outside of the ledger: it belongs to no operation, and may be sent again as it likes. Its fields with
// the tag `path` are in its route, the others in the body as JSON.
type Question interface {
	Route() Route
	// Check refuses, with ReasonInvalid, what cannot be answered whatever the state of the server.
	Check() error
}

// Asking is a question with its answer.
type Asking[R any] interface {
	Question
	Reply() R
}

// Route is where a question is asked.
type Route struct {
	Method string
	Path   string // with the fields' names in braces: "/v1/databases/{id}/size"
}

// Pattern is the route as net/http's ServeMux takes it.
func (r Route) Pattern() string { return r.Method + " " + r.Path }
