// Package httpapi serves the use cases over HTTP, with fiber: the control plane API of the spec, under /api/v1.
//
//	wire          the JSON types of requests and answers
//	routes.go     the one table of routes, made of each area's rows; route.go what a route is
//	databases.go  and a file for each further area: its rows and handlers
//	pipeline.go   the checks before a handler, in their one order
//	gate.go       what the pipeline asks of the use cases
//	request.go    what a handler is given; answer.go what it gives back; download.go for files
//	pacedwriter.go  how slow the client of a download may be; clientwatch.go whether it is still there
//	errors.go     the one translation of an error into an answer
//	body.go       the only reader of request bodies; strictjson.go and shape.go decide what JSON is accepted
//	front.go      authentication before the body: how fasthttp is kept from reading it
//	listener.go   slow clients, lost answers, the bound on connections
//	server.go     construction, serving, graceful shutdown
//	observe.go    access log and metrics
//	openapi.go    the OpenAPI document, made from the table; schema.go its schemas, refusals.go its errors
package httpapi
