package cluster_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	sample.Tests(3)
	os.Exit(clustertest.Main(m))
}

// one asks a database a question with one answer.
func one(t *testing.T, url, query string) string {
	t.Helper()
	answer, err := ask(t.Context(), url, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func ask(ctx context.Context, url, query string) (answer string, err error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return answer, db.QueryRowContext(ctx, query).Scan(&answer)
}

func stop(t *testing.T, pg *cluster.Postgres) {
	t.Helper()
	check.NoError(t, pg.Stop(t.Context(), cluster.Fast))
}

// ends fails the test when a channel is not closed soon.
func ends(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(check.Patience):
		t.Fatalf("%s has not ended", what)
	}
}
