package clustertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// Pair is a primary with a synchronous streaming standby of the test's own: what a session was told is committed, both have. dir
// is the primary's folder, for Demote.
type Pair struct {
	Primary, Standby *cluster.Postgres
	dir              string
}

// NewPair starts a pair. The standby is a copy of the primary's files, as pg_basebackup makes one. prepare may put something into
// the primary before.
func NewPair(t testing.TB, prepare func(primary *cluster.Postgres)) Pair {
	t.Helper()
	settings := map[string]string{"wal_level": "replica", "max_wal_senders": "4", "wal_keep_size": "64MB", "full_page_writes": "on"}
	first := options(t.TempDir(), settings)
	primary := start(t, first)
	prepare(primary)
	check.NoError(t, primary.Stop(t.Context(), cluster.Fast))
	second := options(t.TempDir(), map[string]string{"primary_conninfo": fmt.Sprintf(
		"host=%s port=%d user=%s password=%s", primary.Host(), primary.Port(), cluster.Superuser, primary.Password())})
	for name, value := range settings {
		second.Settings[name] = value
	}
	data := filepath.Join(second.Dir, "data")
	check.NoError(t, errors.Join(os.CopyFS(data, os.DirFS(filepath.Join(first.Dir, "data"))),
		os.WriteFile(filepath.Join(second.Dir, "superuser.password"), []byte(primary.Password()), 0o600),
		standbyFrom(second.Dir), os.Chmod(data, 0o700), cluster.Own(data)))
	check.NoError(t, primary.Start(t.Context()))
	p := Pair{primary, start(t, second), first.Dir}
	Exec(t, primary.URL("postgres"), "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	db := check.Must(sql.Open("postgres", primary.URL("postgres")))(t)
	defer db.Close()
	check.Eventually(t, "the standby does not stream", func() bool {
		var streams bool
		err := db.QueryRow("SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')").Scan(&streams)
		return err == nil && streams
	})
	return p
}

// standbyFrom has a cluster start as a standby.
func standbyFrom(dir string) error {
	signal := filepath.Join(dir, "data", "standby.signal")
	return errors.Join(os.WriteFile(signal, nil, 0o600), cluster.Own(signal))
}

// Promote makes the standby a primary.
func (p Pair) Promote(t testing.TB) {
	t.Helper()
	Exec(t, p.Standby.URL("postgres"), "SELECT pg_promote()")
}

// Demote starts the stopped primary again, as a standby.
func (p Pair) Demote(t testing.TB) {
	t.Helper()
	check.NoError(t, errors.Join(standbyFrom(p.dir), p.Primary.Start(context.WithoutCancel(t.Context()))))
}
