package backup_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// textLike makes rows of about 500 bytes: times, addresses, words of a vocabulary, numbers. The words repeat every 50,000 rows,
// which gzip, whose window is 32 KB, cannot see.
const textLike = `CREATE TABLE vocabulary AS
	SELECT n, translate(substr(md5(n::text), 1, 3 + n % 8), '0123456789', 'aeioulnrst') AS word
	FROM generate_series(0, 4999) n;
	CREATE TABLE text AS SELECT n, (SELECT string_agg(word, ' ') FROM (SELECT (n * 31 + i * i * 977 + (n % 613) * i) % 5000 AS k
		FROM generate_series(1, 60) i) x JOIN vocabulary v ON v.n = x.k) AS body FROM generate_series(0, 49999) n;
	CREATE TABLE article AS SELECT g.id, now() - g.id * interval '37 seconds' AS at,
	'user' || (g.id * 7919) % 100000 || '@example.org' AS email, body, (g.id * 104729 % 1000003) / 100.0 AS price
	FROM text JOIN generate_series(1::bigint, `

// BenchmarkBackup compares a backup without verification with pg_dump | gzip -6 of the same database, in one run. The ratios
// are of wall time and of file size. PGHERD_BENCH_ROWS sets the size (about 2,300 rows a megabyte).
func BenchmarkBackup(b *testing.B) {
	rows := 1_200_000
	if n, err := strconv.Atoi(os.Getenv("PGHERD_BENCH_ROWS")); err == nil {
		rows = n
	}
	db := clustertest.NewDatabase(b)
	clustertest.Exec(b, db.URL, textLike+strconv.Itoa(rows)+") AS g(id) ON text.n = g.id % 50000 ORDER BY g.id", "VACUUM ANALYZE")
	tools, err := toolchain.Find()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		plain := filepath.Join(b.TempDir(), "plain.sql.gz")
		began := time.Now()
		pipe := exec.Command("sh", "-c", `"$1" --no-owner --no-privileges "$2" | gzip -6 > "$3"`, "sh", tools.PgDump, db.URL, plain)
		if out, err := pipe.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		baseline := time.Since(began)
		info, err := os.Stat(plain)
		if err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		size := backupOnce(b, db)
		b.ReportMetric(time.Since(began).Seconds()/baseline.Seconds(), "time-ratio")
		b.ReportMetric(float64(size)/float64(info.Size()), "size-ratio")
		b.ReportMetric(baseline.Seconds(), "baseline-s")
		b.ReportMetric(float64(info.Size())/1e6, "baseline-MB")
	}
}

func backupOnce(b *testing.B, db clustertest.Database) int64 {
	config := backuptest.At(db.Cluster.Host(), db.Cluster.Port())
	config.User, config.Password = "postgres", db.Cluster.Password()
	files := store.New(b.TempDir(), store.Options{Reserve: 1, Key: backuptest.OneKey})
	if err := files.Sweep(); err != nil {
		b.Fatal(err)
	}
	agent := backuptest.NewAgent(config, files)
	defer agent.Room.Close()
	clustertest.Exec(b, db.Cluster.URL("postgres"), `CREATE SCHEMA IF NOT EXISTS ledger`, backuptest.LedgerTables(b))
	result, err := agent.Run(context.Background(), backup.Request{
		OperationID: backuptest.OperationID, DatabaseID: backuptest.DatabaseID, Database: db.Name, Filename: backuptest.Filename,
	}, backuptest.Unseen)
	if err != nil {
		b.Fatal(err)
	}
	return result.Manifest.File.SizeBytes
}
