package main

import (
	"context"
	"fmt"
)

const (
	someConnections = 10 // of another role: two of them have room in a database
	// mostForOne is times what such a role takes.
	mostForOne = 1.5
)

// measureOneConnection makes and rotates roles with a connection limit of 1, and others with a higher one, through the API: the
// log-ins that prove a password at both entries of the pooler have one server connection between them.
func measureOneConnection(ctx context.Context, b *bench) ([]row, error) {
	db, err := b.client.create(ctx, "roles-of-one")
	if err != nil {
		return nil, err
	}
	limited := func(limit int) (creation, rotation way, err error) {
		kept, err := b.client.createRole(ctx, db.ID, fmt.Sprintf("rotated within %d", limit), limit)
		made := kept
		creation = way{
			measured: func(n int) (err error) {
				made, err = b.client.createRole(ctx, db.ID, fmt.Sprintf("role %d within %d", n, limit), limit)
				return err
			},
			after: func(int) error { return b.client.removeRole(ctx, db.ID, made.RoleID) },
		}
		rotation = way{measured: func(int) error { return b.client.rotateRole(ctx, db.ID, kept.RoleID) }}
		return creation, rotation, err
	}
	createOne, rotateOne, err := limited(1)
	if err != nil {
		return nil, err
	}
	createMany, rotateMany, err := limited(someConnections)
	if err != nil {
		return nil, err
	}
	created, err := inTurn(b.runs*rolePairsPerRun, createOne, createMany)
	if err != nil {
		return nil, err
	}
	rotated, err := inTurn(b.runs*rolePairsPerRun, rotateOne, rotateMany)
	if err != nil {
		return nil, err
	}
	return []row{
		created.row(fmt.Sprintf("POST /custom-roles with a connection limit of 1 against %d", someConnections), mostForOne),
		rotated.row("  rotation by POST .../changes", mostForOne),
	}, nil
}
