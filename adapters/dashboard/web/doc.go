// Package web serves a table of pages to people with browsers: which request reaches which page after which checks, what every
// answer carries, and what pages are made of. It knows nothing of databases.
//
// The order of the checks is that of Server.ServeHTTP and Server.serve: the name of the host, the page, the proof that a form was
// sent by a page of this server, the session and its rate, and then the page itself, which asks the use cases.
package web
