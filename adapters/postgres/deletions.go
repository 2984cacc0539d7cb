package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var tombstoneTable = pgdb.TableOf[deletion.Tombstone]("tombstones").WithOptional("recovery_id").Added()

// gone is what a record says whose database is deleted.
const gone = "status IN ('deleted', 'purging')"

// What the access snapshot of a tombstone t holds.
const (
	snapshotMembers = `(SELECT count(*) FROM tombstone_members m WHERE m.database_id = t.database_id)`
	snapshotKeys    = `(SELECT count(*) FROM tombstone_keys k WHERE k.database_id = t.database_id)`
	snapshotEntries = `(SELECT count(*) FROM allowlist_entries e WHERE e.database_id = t.database_id)`
)

// inService is true of a database d that is not deleted, or is being recovered.
const inService = "(NOT d." + gone + ` OR EXISTS (
	SELECT FROM operations o WHERE o.database_id = d.id AND o.kind = 'recover' AND o.` + open + "))"

var (
	dropTombstone = pgdb.Written("DELETE FROM tombstones WHERE database_id = $1")
	holdBackups   = pgdb.Written("UPDATE backups SET held = $2 WHERE database_id = $1 AND expires_at IS NOT NULL")
	// The number of each is that of its rows: what the snapshot says of itself is what was stored.
	keepMembers = pgdb.Written(`INSERT INTO tombstone_members (database_id, user_id)
		SELECT database_id, user_id FROM memberships WHERE database_id = $1`)
	keepKeys = pgdb.Written(`INSERT INTO tombstone_keys (database_id, key_id)
		SELECT b.database_id, b.key_id FROM key_databases b JOIN api_keys k ON k.id = b.key_id
		WHERE b.database_id = $1 AND k.revoked_at IS NULL`)
	countSnapshot = pgdb.Written(`UPDATE tombstones t SET members = ` + snapshotMembers + `, keys = ` + snapshotKeys + `,
			allowlist = ` + snapshotEntries + `
		WHERE t.database_id = $1 RETURNING ` + tombstoneTable.Row("t"))
	setRecovered = pgdb.Define(tombstoneTable.Update([]string{"purge_after"}, "database_id = ?"))
	setRecovery  = pgdb.Define(tombstoneTable.Update([]string{"recovery_id"}, "database_id = ?"))

	getTombstone   = pgdb.Define(tombstoneTable.Read().Where("t.database_id = ?"))
	listTombstones = pgdb.Define(tombstoneTable.Read().Join("databases d ON d.id = t.database_id AND d."+gone).
			Where("d.account_id = ? AND (t.deleted_at, t.database_id) < (?, ?)").
			OrderBy("t.deleted_at DESC", "t.database_id DESC").Suffix("LIMIT ?"))
	countGone = pgdb.Written(`SELECT count(*) AS databases, coalesce(sum(d.size_bytes + (
			SELECT coalesce(sum(b.size_bytes), 0) FROM backups b WHERE b.database_id = d.id)), 0)::bigint AS bytes
		FROM databases d WHERE account_id = $1 AND ` + gone + `
		AND $2 = EXISTS (SELECT FROM previews p WHERE p.database_id = d.id)`)
	dueTombstones = pgdb.Define(tombstoneTable.Read().Join("databases d ON d.id = t.database_id AND d.status = 'deleted'").
			Join("accounts a ON a.id = d.account_id AND a.suspended_at IS NULL").
			Where("t.purge_after <= ?").
			Where("NOT EXISTS (SELECT FROM operations o WHERE o.database_id = t.database_id AND NOT o.logins AND o."+open+")").
			OrderBy("t.purge_after", "t.database_id").Suffix("LIMIT ?"))

	tombstoneRecords = pgdb.Define(readDatabases().Where("t.id = ANY(?::uuid[])"))
	tombstoneBackups = pgdb.Define(backupTable.Read().
				Join("tombstones d ON d.database_id = t.database_id AND d.filename = t.filename").
				Where("d.database_id = ANY(?::uuid[]) AND t.deleting_at IS NULL"))
	tombstoneAccess = pgdb.Written(`SELECT t.database_id, ` + snapshotMembers + ` AS members, ` + snapshotKeys + ` AS keys,
			` + snapshotEntries + ` AS allowlist
		FROM tombstones t WHERE t.database_id = ANY($1::uuid[])`)

	skippedMembers = pgdb.Written(`SELECT t.user_id FROM tombstone_members t
		WHERE t.database_id = $1 AND NOT EXISTS (
			SELECT FROM memberships m WHERE m.database_id = t.database_id AND m.user_id = t.user_id)
		ORDER BY t.user_id`)
	skippedKeys = pgdb.Written(`SELECT t.key_id FROM tombstone_keys t JOIN api_keys k ON k.id = t.key_id
		WHERE t.database_id = $1 AND (k.revoked_at IS NOT NULL OR NOT EXISTS (
			SELECT FROM key_databases b WHERE b.database_id = t.database_id AND b.key_id = t.key_id))
		ORDER BY t.key_id`)
)

type deletions struct{ pgdb.Rows[deletion.Tombstone] }

func (d deletions) Add(ctx context.Context, t deletion.Tombstone) (deletion.Tombstone, error) {
	if err := d.Write(ctx, dropTombstone, t.DatabaseID); err != nil {
		return t, err
	}
	if err := d.Rows.Add(ctx, t); err != nil {
		return t, err
	}
	if err := d.Write(ctx, holdBackups, t.DatabaseID, true); err != nil {
		return t, err
	}
	for _, keep := range []*pgdb.Statement{keepMembers, keepKeys} {
		if err := d.Write(ctx, keep, t.DatabaseID); err != nil {
			return t, err
		}
	}
	return d.Locked(ctx, countSnapshot, t.DatabaseID)
}

func (d deletions) Get(ctx context.Context, db id.DatabaseID) (s deletion.Scene, err error) {
	t, err := d.One(ctx, getTombstone, db)
	if err != nil {
		return s, err
	}
	list, err := d.scenes(ctx, []deletion.Tombstone{t})
	if err == nil && len(list) == 0 {
		err = ports.ErrNoRow // it was removed meanwhile
	}
	if err != nil {
		return s, err
	}
	return list[0], nil
}

func (d deletions) List(ctx context.Context, of id.AccountID, p ports.Page) ([]deletion.Scene, error) {
	page, err := d.Page(ctx, listTombstones, pgdb.Backward, p, of)
	if err != nil {
		return nil, err
	}
	return d.scenes(ctx, page)
}

// scenes reads what is known of the databases of tombstones, by one statement for each part.
func (d deletions) scenes(ctx context.Context, of []deletion.Tombstone) (list []deletion.Scene, err error) {
	dbs := make([]id.DatabaseID, len(of))
	for i, t := range of {
		dbs[i] = t.DatabaseID
	}
	type found struct {
		DatabaseID id.DatabaseID `db:"database_id"`
		deletion.Access
	}
	records, err := pgdb.All[database.Record](ctx, d.Session, tombstoneRecords, pq.Array(dbs))
	if err != nil {
		return nil, err
	}
	backups, err := pgdb.All[backup.Backup](ctx, d.Session, tombstoneBackups, pq.Array(dbs))
	if err != nil {
		return nil, err
	}
	access, err := pgdb.All[found](ctx, d.Session, tombstoneAccess, pq.Array(dbs))
	if err != nil {
		return nil, err
	}
	scenes := map[id.DatabaseID]deletion.Scene{}
	for _, r := range records {
		scenes[r.ID] = deletion.Scene{Database: r}
	}
	for _, b := range backups {
		s := scenes[b.DatabaseID]
		s.Backup = &b
		scenes[b.DatabaseID] = s
	}
	for _, a := range access {
		s := scenes[a.DatabaseID]
		s.Found = a.Access
		scenes[a.DatabaseID] = s
	}
	for _, t := range of {
		s := scenes[t.DatabaseID]
		if s.Tombstone = t; s.Database.ID != "" { // otherwise it was removed meanwhile
			list = append(list, s)
		}
	}
	return list, nil
}

func (d deletions) Count(ctx context.Context, of id.AccountID, previews bool) (account.Deleted, error) {
	return pgdb.One[account.Deleted](ctx, d.Session, countGone, of, previews)
}

func (d deletions) Due(ctx context.Context, now time.Time, limit int) ([]deletion.Tombstone, error) {
	return d.All(ctx, dueTombstones, now, limit)
}

func (d deletions) SetRecovery(ctx context.Context, db id.DatabaseID, op id.OperationID) error {
	return d.MustChange(ctx, ports.ErrNoRow, setRecovery, op, db)
}

func (d deletions) Recovered(ctx context.Context, db id.DatabaseID) error {
	if err := d.Write(ctx, holdBackups, db, false); err != nil {
		return err
	}
	return d.MustChange(ctx, ports.ErrNoRow, setRecovered, deletion.Never, db)
}

func (d deletions) Skipped(ctx context.Context, db id.DatabaseID) (s deletion.Skipped, err error) {
	if s.Members, err = pgdb.All[id.UserID](ctx, d.Session, skippedMembers, db); err != nil {
		return s, err
	}
	s.Keys, err = pgdb.All[id.KeyID](ctx, d.Session, skippedKeys, db)
	return s, err
}
