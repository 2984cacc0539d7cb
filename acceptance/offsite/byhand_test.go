package offsite

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// byHand is how long it takes who has pgBackRest, PostgreSQL, pg_dump and psql to have the large database back as it was: a
// restore of that database alone, the replay, and pg_dump | psql into a new database.
func (w *world) byHand(t *testing.T, at time.Time) time.Duration {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	var owner syscall.Stat_t
	check.NoError(t, syscall.Stat(w.One(t, "SHOW data_directory"), &owner))
	dir := check.Must(cluster.SocketDir(filepath.Join(t.TempDir(), "by-hand")))(t)
	check.NoError(t, os.MkdirAll(dir, 0o700))
	check.NoError(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	run := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		}
		return cmd
	}
	succeeds := func(cmd *exec.Cmd) {
		text, err := cmd.CombinedOutput()
		check.NoError(t, err, string(text))
	}
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "pgbackrest.conf")
	live := filepath.Join(w.Config.BackupDir, "archive", "pgbackrest")
	text := string(check.Must(os.ReadFile(filepath.Join(live, "pgbackrest.conf")))(t))
	text = strings.NewReplacer(filepath.Join(live, "lock"), dir, filepath.Join(live, "spool"), dir).Replace(text)
	check.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	check.NoError(t, os.Chown(config, int(owner.Uid), int(owner.Gid)))

	began := time.Now()
	succeeds(run(w.Config.Archive.PgBackRest, "--config="+config, "--stanza=main", "--pg1-path="+data, "--type=time",
		"--target="+at.UTC().Format("2006-01-02 15:04:05.999999+00"), "--target-action=promote",
		"--archive-mode=off", "--tablespace-map-all="+dir+"/tablespaces", "--db-include="+w.DatabaseOID(t, w.large), "restore"))
	check.NoError(t, os.WriteFile(filepath.Join(dir, "hba"), []byte("local all all trust\n"), 0o644))
	server := run(w.Config.Archive.Postgres, "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+dir,
		"-c", "port=5432", "-c", "hba_file="+filepath.Join(dir, "hba"), "-c", "archive_mode=off",
		"-c", "archive_command=", "-c", "hot_standby=off",
		"-c", "fsync=off", "-c", "max_wal_size=8GB", "-c", "config_file="+filepath.Join(dir, "hba.conf"))
	check.NoError(t, os.WriteFile(filepath.Join(dir, "hba.conf"), []byte("max_connections = 200\n"), 0o644))
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	check.NoError(t, server.Start())
	ended := make(chan struct{})
	go func() {
		_ = server.Wait() // its log says why
		close(ended)
	}()
	defer func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		<-ended
	}()
	where := fmt.Sprintf("host='%s' port=5432 user=%s dbname='%s'", dir, cluster.Superuser, w.large.Name)
	db := agenttest.Open(t, where+" sslmode=disable")
	patiently(t, "the server by hand does not start", func() bool {
		select {
		case <-ended:
			t.Fatal(log.String())
		default:
		}
		_, err := db.Exec("SELECT 1")
		return err == nil
	})
	check.Must(w.Super.Exec("CREATE DATABASE by_hand"))(t)
	dump := exec.Command("sh", "-c", `"$1" --no-owner --no-privileges "$2" | "$3" -qX -o /dev/null "$4"`, "sh",
		tools.PgDump, where, filepath.Join(filepath.Dir(tools.PgDump), "psql"), w.PG.URL("by_hand"))
	succeeds(dump)
	took := time.Since(began)
	var rows int // a newer pg_dump sets what this server does not have: psql goes on after that
	check.NoError(t, agenttest.Open(t, w.PG.URL("by_hand")).QueryRow("SELECT count(*) FROM filling").Scan(&rows))
	if rows != w.rows() {
		t.Fatalf("by hand there are %d rows", rows)
	}
	check.Must(w.Super.Exec("DROP DATABASE by_hand WITH (FORCE)"))(t)
	return took
}
