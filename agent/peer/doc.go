// Package peer is how the agents of two servers reach each other, for one operation at a time. The agent that admits has a part
// of its listener for the other one, which shows a token. That opens the file that passes, the database's backups and, where the
// operation is followed, the stream of the database's changes: nothing else of the server.
//
// The changes go over one connection, through both agents, from the one PostgreSQL to the other: a subscription there comes to a
// line, a port of its own machine, which leads to the peer, and that logs it in and lets pass what a subscription says.
package peer

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// The routes of peers. The operation is the one for which the peer is admitted.
const (
	reachRoute   = "GET /v1/peers/{operation}"
	passingRoute = "GET /v1/peers/{operation}/passing/{filename}/{part}"
	backupRoute  = "GET /v1/peers/{operation}/backups/{blob}"
)

// Part is one of the parts of a backup.
type Part string

// The parts. Head and File can be had while the file is being written.
const (
	// Head is JSON of a backup.Manifest. While the file is being written, Rows are estimates, and it has no digests of files.
	Head     Part = "head"
	File     Part = "file"
	Schema   Part = "schema" // the sidecar
	Manifest Part = "manifest"
)

// madeKey is the parameter of a request for a part, other than Head, that says of which file, by when it was begun.
const madeKey = "made"

func passingPath(op id.OperationID, name backup.Filename, part Part) string {
	return "/v1/peers/" + string(op) + "/passing/" + string(name) + "/" + string(part)
}

func reachPath(op id.OperationID) string { return "/v1/peers/" + string(op) }

func backupPath(op id.OperationID, blob string) string {
	return "/v1/peers/" + string(op) + "/backups/" + blob
}

// fromKey is the parameter of a request that says how many bytes of a file the peer has already.
const fromKey = "from"
