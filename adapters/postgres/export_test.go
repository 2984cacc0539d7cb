package postgres

import (
	"context"
	"io/fs"
	"maps"
	"slices"
)

// Migrations are those of this program.
var Migrations fs.FS = migrationFiles

// MigrateWith is Migrate by a program that has other migrations.
func MigrateWith(ctx context.Context, url string, files fs.FS) error {
	return migrateWith(ctx, url, files, false)
}

// MigrateStoppedWith is MigrateStopped by a program that has other migrations.
func MigrateStoppedWith(ctx context.Context, url string, files fs.FS) error {
	return migrateWith(ctx, url, files, true)
}

// OldestServed is the oldest program that the schema serves with these migrations.
var OldestServed = oldestServed

// NotKept, Restless and NamedInDumps are the tables that package postgres names for snapshots.
var (
	NotKept  = notKept
	Restless = restless
)

func NamedInDumps() []string {
	return slices.Concat(slices.Collect(maps.Keys(notKept)), slices.Collect(maps.Keys(keptRows)))
}
