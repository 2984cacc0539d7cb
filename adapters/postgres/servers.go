package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

var (
	serverTable = pgdb.TableOf[server.Server]("servers").Added().
		Saved([]string{"id"}, []string{
			"name", "agent_url", "sealed_secret", "ca", "public_host", "public_port", "capacity", "connections", "enabled",
			"installation", "postgres_version",
		})
)

var (
	getServer      = pgdb.Define(serverTable.Read().Where("t.id = ?"))
	lockServer     = pgdb.Written("SELECT FROM servers WHERE id = $1 FOR NO KEY UPDATE")
	listServers    = pgdb.Define(serverTable.Read().OrderBy("t.name"))
	serverIDs      = pgdb.Written("SELECT id FROM servers ORDER BY name")
	serverContents = pgdb.Written(fmt.Sprintf(`SELECT count(*) FILTER (WHERE d.server_id = $1 AND NOT d.%[1]s) AS databases,
			count(*) FILTER (WHERE d.server_id = $1 AND d.%[1]s) AS deleted, count(*) FILTER (WHERE d.server_id <> $1) AS moving,
			%[2]s AS sold,
			(SELECT count(*) FROM backups b JOIN databases o ON o.id = b.database_id WHERE o.server_id = $1) AS backups,
			(SELECT count(*) FROM operations WHERE server_id = $1 AND NOT logins AND %[3]s) AS operations,
			(SELECT count(*) FROM role_changes c JOIN databases o ON o.id = c.database_id
				WHERE o.server_id = $1 AND c.status = 'pending') AS changes,
			(SELECT count(*) FROM forwards WHERE server_id = $1) AS forwards,
			(SELECT count(*) FROM backups WHERE kept_by = $1) AS kept
		FROM %[4]s`, gone, soldConnections, open, standingOn("$1")))
	forgetQualifications = pgdb.Written("DELETE FROM extension_qualifications WHERE server_id = $1")
	removeServer         = pgdb.Written("DELETE FROM servers WHERE id = $1")
	avoidServer          = pgdb.Written("UPDATE servers SET avoided_until = $1 WHERE id = $2")
	answered             = pgdb.Written(`UPDATE servers
		SET answered_at = $1, away_since = NULL, storage = coalesce(nullif($2, ''), storage),
			public_ca = coalesce(nullif($3, ''), public_ca),
			postgres_version = coalesce(nullif(postgres_version, 0), $4) WHERE id = $5`)
	away   = pgdb.Written("UPDATE servers SET away_since = least(away_since, $1) WHERE id = $2")
	moveTo = pgdb.Written("UPDATE databases SET server_id = $1 WHERE id = $2")

	// Whoever asks for room waits at lockServers or lockServer. What is sold is read by a statement of its own, after it, so that it
	// counts what was placed before.
	lockServers = pgdb.Written("SELECT FROM servers WHERE enabled ORDER BY id FOR NO KEY UPDATE")
	rooms       = pgdb.Written(roomOf + " WHERE t.enabled ORDER BY t.name")
	room        = pgdb.Written(roomOf + " WHERE t.id::text = $2")
)

// roomOf takes the name that is asked about.
var roomOf = fmt.Sprintf(`SELECT %s, sold.* FROM servers t
	CROSS JOIN LATERAL (SELECT count(*) AS held, %s AS sold, coalesce(bool_or(d.name = $1), false) AS named
		FROM %s) sold`, serverTable.Row("t"), soldConnections, standingOn("t.id"))

// standingOn are the databases d that take room on a server: its own, and those that move to it or from it.
func standingOn(server string) string {
	return fmt.Sprintf(`(SELECT o.* FROM databases o WHERE o.server_id = %[1]s
			UNION ALL SELECT o.* FROM operations m JOIN databases o ON o.id = m.database_id AND o.server_id <> %[1]s
			WHERE m.other_id = %[1]s AND m.%[2]s) d`, server, open)
}

// soldConnections sums what databases d can take: of each that is in service, database.Record.ReservedConnections.
var soldConnections = fmt.Sprintf(`coalesce(sum(%d + CASE WHEN d.connection_cap > 0 THEN d.connection_cap
		WHEN d.overlay_id IS NULL THEN %d ELSE %d END) FILTER (WHERE %s), 0)`,
	database.SpareConnections, database.UncappedConnections, database.UncappedConnections+database.OverlayConnections, inService)

type servers struct{ pgdb.Rows[server.Server] }

func (s servers) Get(ctx context.Context, of id.ServerID) (server.Server, error) {
	return s.One(ctx, getServer, of)
}

func (s servers) List(ctx context.Context) ([]server.Server, error) {
	return s.All(ctx, listServers)
}

func (s servers) IDs(ctx context.Context) ([]id.ServerID, error) {
	return pgdb.All[id.ServerID](ctx, s.Session, serverIDs)
}

func (s servers) Lock(ctx context.Context, of id.ServerID) error {
	return s.MustChange(ctx, ports.ErrNoRow, lockServer, of)
}

func (s servers) Rooms(ctx context.Context, named string) ([]server.Room, error) {
	if err := s.Write(ctx, lockServers); err != nil {
		return nil, err
	}
	return pgdb.All[server.Room](ctx, s.Session, rooms, named)
}

func (s servers) Room(ctx context.Context, of id.ServerID, named string) (server.Room, error) {
	if err := s.Lock(ctx, of); err != nil {
		return server.Room{}, err
	}
	return pgdb.One[server.Room](ctx, s.Session, room, named, of)
}

func (s servers) Move(ctx context.Context, db id.DatabaseID, to id.ServerID) error {
	return s.MustChange(ctx, ports.ErrNoRow, moveTo, to, db)
}

func (s servers) Avoid(ctx context.Context, of id.ServerID, until *time.Time) error {
	return s.MustChange(ctx, ports.ErrNoRow, avoidServer, until, of)
}

func (s servers) Answered(ctx context.Context, of id.ServerID, at time.Time, said server.Answer) error {
	return s.MustChange(ctx, ports.ErrNoRow, answered, at, said.Storage, said.PublicCA, said.PostgresVersion, of)
}

func (s servers) Away(ctx context.Context, of id.ServerID, since time.Time) error {
	return s.MustChange(ctx, ports.ErrNoRow, away, since, of)
}

func (s servers) Contents(ctx context.Context, of id.ServerID) (server.Contents, error) {
	return pgdb.One[server.Contents](ctx, s.Session, serverContents, of)
}

func (s servers) Remove(ctx context.Context, of id.ServerID) error {
	if err := s.Write(ctx, forgetQualifications, of); err != nil {
		return err
	}
	return s.MustChange(ctx, ports.ErrNoRow, removeServer, of)
}
