// Package httpapi is the control plane API of the spec, under /api/v1: its routes, and what each does with the use cases.
//
//	serve         what serves a table of routes: the checks before a handler, errors, limits, the OpenAPI document
//	wire          the JSON types of requests and answers
//	routes.go     the one table of routes, made of each area's rows
//	databases.go  and a file for each further area: its rows and handlers
//	targets.go    what a path begins with, and how the use cases find it
package httpapi
