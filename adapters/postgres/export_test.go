package postgres

import (
	"context"
	"io/fs"
)

// Migrations are those of this program.
var Migrations fs.FS = migrationFiles

// MigrateWith is Migrate by a program that has other migrations.
func MigrateWith(ctx context.Context, url string, files fs.FS) error {
	return migrateWith(ctx, url, files)
}
