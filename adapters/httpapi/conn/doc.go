// Package conn is what the API's server knows of connections.
//
//	framed.go    a connection that gives fasthttp one header at a time, and no byte of a body
//	listener.go  what keeps slow clients and lost answers from doing harm
//	crowd.go     how many connections there may be; core/guests says which is closed for a new one
//	paced.go     how slow the client of a download may be
//	socket_*.go  what only the kernel knows, such as whether a client has left
package conn
