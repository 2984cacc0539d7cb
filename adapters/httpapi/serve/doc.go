// Package serve serves a table of routes over HTTP, with fiber. What it knows of connections is package conn's.
//
//	route.go        what a route is; work.go what it does and answers, page.go the lists
//	pipeline.go     the checks before a handler, in their one order
//	gate.go         what the pipeline asks of the use cases
//	request.go      what a handler is given; answer.go what it gives back; download.go for files
//	clientwatch.go  whether the client of a request is still there
//	errors.go       the one translation of an error into an answer
//	body.go         the only reader of request bodies; strictjson.go and shape.go decide what JSON is accepted
//	front.go        authentication before the body: how fasthttp is kept from reading it
//	server.go       construction, serving, graceful shutdown
//	observe.go      access log and metrics
//	openapi.go      the OpenAPI document, made from the table; schema.go its schemas, refusals.go its errors
package serve
