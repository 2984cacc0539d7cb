package copies

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A statement that catches the cancel goes on, and its client with it, until its session is ended from outside.
func TestWorkOnACopyEndsWithItsContext(t *testing.T) {
	pg := clustertest.Postgres(t)
	server := sessions.Server{
		Host: pg.Host(), Port: pg.Port(), User: cluster.Superuser, Password: pg.Password(), Maintenance: "postgres",
	}
	err := server.Admin("", func(admin *sql.DB) error {
		copied := &Isolated{
			server: &server, purpose: copyPurpose{name: "within"}, op: "44444444-4444-4444-8444-444444444444", admin: admin,
		}
		if _, err := admin.Exec(`CREATE DATABASE ` + copied.Name() + ` TEMPLATE template0`); err != nil {
			return err
		}
		defer func() {
			if _, err := admin.Exec(`DROP DATABASE ` + copied.Name() + ` WITH (FORCE)`); err != nil {
				t.Error(err)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := copied.within(ctx, func(ctx context.Context) error {
			return server.With(copied.Name(), copied.op, func(db *sql.DB) error {
				_, err := db.ExecContext(ctx, `DO $$ BEGIN FOR i IN 1..30 LOOP BEGIN PERFORM pg_sleep(1);
					EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$`)
				return err
			})
		})
		if took := time.Since(began); err == nil || took > 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
