package pooler

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// stack is a real PostgreSQL and a real PgBouncer with two databases, shop and blog, each with a login of its own name
// (password "<name>-pw"), shop with shop_rt (limit 2) as well.
type stack struct {
	tools    toolchain.Tools
	dir      string
	account  *syscall.Credential
	settings Settings
	pooler   *Pooler
	super    *sql.DB // the maintenance database as superuser
	bouncer  *exec.Cmd
}

var (
	oneStack  *stack
	stackErr  error
	startOnce sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if oneStack != nil {
		oneStack.stop()
	}
	os.Exit(code)
}

// realStack gives every test the same servers, with the state of defaultState and open gates.
func realStack(t testing.TB) *stack {
	t.Helper()
	startOnce.Do(func() { oneStack, stackErr = startStack() })
	if stackErr != nil {
		t.Fatal(stackErr)
	}
	if err := oneStack.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	return oneStack
}

func (s *stack) defaultState() State {
	return State{Settings: s.settings, Entries: []Entry{
		{Database: "shop", ConnectionCap: 8, Logins: []Login{{"shop", 8}, {"shop_rt", 2}}},
		{Database: "blog", ConnectionCap: 8, Logins: []Login{{"blog", 8}}},
	}}
}

func (s *stack) reset(ctx context.Context) error {
	_, err := s.super.ExecContext(ctx, `TRUNCATE pooler.gate;
		INSERT INTO pooler.gate VALUES ('shop', 'shop', true), ('shop_rt', 'shop', true), ('blog', 'blog', true)`)
	return errors.Join(err, s.pooler.Apply(ctx, s.defaultState()), s.pooler.Evict(ctx, OfDatabase("shop")),
		s.pooler.Evict(ctx, OfDatabase("blog")))
}

func startStack() (*stack, error) {
	tools, err := toolchain.Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "pgherd-pooler-")
	if err != nil {
		return nil, err
	}
	s := &stack{tools: tools, dir: dir}
	for _, step := range []func() error{s.chooseAccount, s.configure, s.startPostgres, s.fillPostgres, s.startBouncer} {
		if err := step(); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// chooseAccount picks an unprivileged user where the tests run as root, which both servers refuse.
func (s *stack) chooseAccount() error {
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	s.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.dir, uid, gid)
}

func (s *stack) owner() *Owner {
	if s.account == nil {
		return nil
	}
	return &Owner{UID: int(s.account.Uid), GID: int(s.account.Gid)}
}

func (s *stack) configure() error {
	set := DefaultSettings()
	set.Dir, set.SocketDir = filepath.Join(s.dir, "files"), s.dir
	set.TLSCertFile, set.TLSKeyFile = filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key")
	set.AuthPassword, set.AdminPassword = `auth "pw`, `admin "pw`
	set.LogFile = filepath.Join(s.dir, "pgbouncer.log")
	set.ListenPort, set.ServerPort = freePort(), freePort()
	set.ListenAddresses = []string{"127.0.0.1", "::1"}
	s.settings, s.pooler = set, New(set, s.owner())
	return s.writeCertificate()
}

func (s *stack) startPostgres() error {
	data := filepath.Join(s.dir, "data")
	err := s.run(s.tools.Initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	if err != nil {
		return err
	}
	// Trust for the test's own superuser only; everybody else shows a password, as the pooler must.
	hba := "local all postgres trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(hba), 0o644); err != nil {
		return err
	}
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c fsync=off",
		s.settings.ServerPort, s.dir)
	return s.run(s.tools.PgCtl, "-D", data, "-w", "-l", filepath.Join(s.dir, "postgres.log"), "-o", options, "start")
}

func (s *stack) fillPostgres() error {
	admin, err := s.open("postgres")
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, statement := range []string{
		"CREATE ROLE pgherd_agent LOGIN", "CREATE DATABASE pgherd", "CREATE DATABASE shop", "CREATE DATABASE blog",
		"CREATE ROLE shop LOGIN PASSWORD 'shop-pw'", "CREATE ROLE shop_rt LOGIN PASSWORD 'shop_rt-pw'",
		"CREATE ROLE blog LOGIN PASSWORD 'blog-pw'",
	} {
		if _, err := admin.Exec(statement); err != nil {
			return err
		}
	}
	if s.super, err = s.open("pgherd"); err != nil {
		return err
	}
	for range 2 { // the schema may be made again
		if _, err := s.super.Exec(SchemaSQL); err != nil {
			return err
		}
	}
	_, err = s.super.Exec("ALTER ROLE pgherd_pooler PASSWORD " + pq.QuoteLiteral(s.settings.AuthPassword))
	return err
}

func (s *stack) open(database string) (*sql.DB, error) {
	return sql.Open("postgres", fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable",
		s.settings.ServerPort, database))
}

func (s *stack) startBouncer() error {
	if err := s.pooler.Write(s.defaultState()); err != nil {
		return err
	}
	s.bouncer = s.command(s.tools.PgBouncer, "-q", ConfigFile(s.settings.Dir))
	s.bouncer.SysProcAttr.Setpgid = true
	if err := s.bouncer.Start(); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := s.pooler.Ping(context.Background())
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *stack) killBouncer() {
	_ = syscall.Kill(-s.bouncer.Process.Pid, syscall.SIGKILL)
	_ = s.bouncer.Wait()
}

func (s *stack) stop() {
	if s.bouncer != nil && s.bouncer.Process != nil {
		s.killBouncer()
	}
	if s.super != nil {
		_ = s.super.Close()
	}
	_ = s.run(s.tools.PgCtl, "-D", filepath.Join(s.dir, "data"), "-m", "immediate", "stop")
	_ = os.RemoveAll(s.dir)
}

func (s *stack) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return cmd
}

func (s *stack) run(name string, args ...string) error {
	log, err := os.CreateTemp(s.dir, "run-*.log") // not a pipe: pg_ctl's server would hold it open
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return nil
}

func (s *stack) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	return errors.Join(err, writePEM(s.settings.TLSCertFile, "CERTIFICATE", cert),
		writePEM(s.settings.TLSKeyFile, "PRIVATE KEY", secret))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644)
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// client is a customer's connection over TCP; extra holds more settings of the connection string.
func (s *stack) client(entry, login, extra string) *sql.DB {
	parts := []string{"host=127.0.0.1", "port=" + strconv.Itoa(s.settings.ListenPort), "dbname=" + entry, "user=" + login,
		"password=" + login + "-pw", "sslmode=verify-full", "sslrootcert=" + s.settings.TLSCertFile, "connect_timeout=20", extra}
	db, err := sql.Open("postgres", strings.Join(parts, " "))
	if err != nil {
		panic(err)
	}
	return db
}

// enter logs in and runs a query, once.
func (s *stack) enter(t testing.TB, entry, login, extra string) error {
	t.Helper()
	db := s.client(entry, login, extra)
	defer db.Close()
	var got string
	err := db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&got)
	if want := strings.TrimSuffix(entry, TransactionSuffix); err == nil && got != want {
		t.Errorf("entry %s leads to database %s", entry, got)
	}
	return err
}
