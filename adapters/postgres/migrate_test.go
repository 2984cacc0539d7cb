package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestOpenRefusesAnEmptyDatabase(t *testing.T) {
	db := clustertest.NewDatabase(t)
	_, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL})
	if !errors.Is(err, postgres.ErrSchemaOlder) || !strings.Contains(err.Error(), "pgherd migrate") {
		t.Errorf("opening an empty database: %v", err)
	}
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	db := migrated(t)
	clustertest.Exec(t, db.URL, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL}); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("opening a newer schema: %v", err)
	}
	if err := postgres.Migrate(t.Context(), db.URL); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("migrating a newer schema: %v", err)
	}
}

func TestMigrateByManyAtOnce(t *testing.T) {
	db := clustertest.NewDatabase(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := postgres.Migrate(t.Context(), db.URL); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var applied int
	row := db.Open(t).QueryRow("SELECT count(*) FROM goose_db_version WHERE version_id > 0")
	if err := row.Scan(&applied); err != nil || applied == 0 {
		t.Fatalf("%d migrations are recorded (%v)", applied, err)
	}
	var twice int
	row = db.Open(t).QueryRow(`SELECT count(*) FROM
		(SELECT FROM goose_db_version GROUP BY version_id HAVING count(*) > 1) d`)
	if err := row.Scan(&twice); err != nil || twice != 0 {
		t.Errorf("%d migrations were applied twice (%v)", twice, err)
	}
	open(t, db)
}

func TestErrorsHideThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://pgherd:s3cr3t@[::1/metadata", "postgres://pgherd:s3cr3t@127.0.0.1:1/metadata?sslmode=disable",
		"host=127.0.0.1 password='s3cr3t", "postgres://pgherd:s3cr3t@127.0.0.1:port/metadata",
	} {
		_, openErr := postgres.Open(t.Context(), postgres.Config{URL: url})
		notifier, notifierErr := postgres.NewNotifier(postgres.Config{URL: url})
		if notifierErr == nil {
			_ = notifier.Close()
		}
		for _, err := range []error{openErr, notifierErr, postgres.Migrate(t.Context(), url)} {
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the password is in %q", err)
			}
		}
		if openErr == nil {
			t.Errorf("%q was opened", url)
		}
	}
}
