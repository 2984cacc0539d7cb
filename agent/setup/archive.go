package setup

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
)

// Archive says that the server keeps an archive, from which databases are had back as they were at a moment.
type Archive struct {
	// Command is the server's archive_command, which hands each segment of WAL over to the agent.
	Command string
	// Timeout is after how long a segment is handed over that is not full; 0 means 10 s. A server that is lost loses no more than
	// that and what the handing over takes.
	Timeout time.Duration
}

// archiveTimeout is the default of Archive.Timeout.
const archiveTimeout = 10 * time.Second

// archiveSQL lets the agent copy the whole server, end a segment of WAL, and see which of them wait. Run by a superuser in the
// maintenance database, as these grants hold in one database only.
const archiveSQL = `GRANT EXECUTE ON FUNCTION pg_catalog.pg_backup_start(text, boolean), pg_catalog.pg_backup_stop(boolean),
	pg_catalog.pg_switch_wal(), pg_catalog.pg_create_restore_point(text) TO ` + AgentLogin

// inspectArchive refuses what an archive cannot be kept of, before anything is changed.
func inspectArchive(ctx context.Context, db *sql.DB, a *Archive) error {
	if a == nil {
		return nil
	}
	var level, whole, command, library string
	err := db.QueryRowContext(ctx, `SELECT pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('full_page_writes'),
		pg_catalog.current_setting('archive_command'), pg_catalog.current_setting('archive_library')`).
		Scan(&level, &whole, &command, &library)
	switch {
	case err != nil:
		return err
	case level == "minimal":
		return errors.New("--archive-socket: wal_level is minimal, and must be replica or logical")
	case whole == "off":
		return errors.New("--archive-socket: full_page_writes is off, and must be on: without it, no single database can be had back")
	case library != "":
		return fmt.Errorf("--archive-socket: archive_library is set (%s): the server is archived by something else, "+
			"and there can be one only",
			library)
	case command != "" && command != "(disabled)" && !strings.HasSuffix(command, archiveMark):
		return errors.New("--archive-socket: archive_command is set already: the server is archived by something else, " +
			"and there can be one only")
	}
	return nil
}

// keepArchive has the server hand its WAL over. It reports whether PostgreSQL has to be restarted for it.
func keepArchive(ctx context.Context, db *sql.DB, a *Archive) (restart bool, err error) {
	if a == nil {
		return false, nil
	}
	timeout := cmp.Or(a.Timeout, archiveTimeout)
	for name, value := range map[string]string{
		"archive_mode": "on", "archive_command": a.Command, "archive_timeout": strconv.Itoa(int(timeout.Seconds())),
	} {
		if err := alterSystem(ctx, db, name, value); err != nil {
			return false, fmt.Errorf("--archive-socket: %w", err)
		}
	}
	return pg.One[bool](ctx, db, "SELECT pg_catalog.current_setting('archive_mode') = 'off'")
}

// archiveMark ends every archive_command of this program: by it, it knows its own, and the engine which program archives.
const archiveMark = " # pgherd's, for pgbackrest"

// ArchiveCommand hands each segment over to an agent by its socket. The program is this one.
func ArchiveCommand(program, socket string) string {
	return shellQuote(program) + " agent archive-push --socket " + shellQuote(socket) + ` "%p"` + archiveMark
}

// shellQuote quotes for a shell, within archive_command, where a percent sign begins a placeholder.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "%", "%%").Replace(s) + "'"
}
