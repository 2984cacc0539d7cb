package dev

import (
	"os"
	"path/filepath"
	"time"

	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// handedOverEvery is longer than an operator would have it: what is asked for is handed over at once, and each time a file of
// 16 MiB is written.
const handedOverEvery = time.Minute

// noArchive tells a developer why nothing can be had back.
const noArchive = "no archive is kept: the user that PostgreSQL runs as does not get to this folder, or to the tools"

// keepArchive says how the server's archive is kept: beside the backups. PostgreSQL runs this very program to hand over what it
// has written. There is no archive where PostgreSQL's user does not get to it, as below the home of root.
func (g *infrastructure) keepArchive() error {
	s := g.settings
	reached, err := cluster.Reaches(s.path("backups"), g.tools.PgBackRest, g.tools.Postgres)
	if err != nil {
		return err
	}
	if !reached {
		g.warnings = append(g.warnings, noArchive)
		return nil
	}
	sockets, err := cluster.SocketDir(s.path("archive"))
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if program, err = cluster.Reachable(program, s.StateDir); err != nil {
		return err
	}
	g.archive = &agent.Archive{
		PgBackRest: g.tools.PgBackRest, Postgres: g.tools.Postgres, Socket: filepath.Join(sockets, "push"),
	}
	g.archived = &setup.Archive{Command: setup.ArchiveCommand(program, g.archive.Socket), Timeout: handedOverEvery}
	return nil
}
