package stack

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Options say what to run.
type Options struct {
	// Dir holds everything that the stack writes. It must exist and be empty.
	Dir string
	// Binary is the program, as Build made it.
	Binary string
	// LeaseHold is how long a worker may be silent; 0 for the program's own.
	LeaseHold time.Duration
	// TemplateDir keeps a cluster made by initdb to copy from; empty for none.
	TemplateDir string
	// BackupDir is the folder of backup files, one in Dir where it is empty.
	BackupDir string
	// BlobDir is where backups are as files, where AgentFlags keep them elsewhere than in BackupDir.
	BlobDir string
	// Archive has the server keep an archive.
	Archive bool
	// Durable keeps fsync on, as an operator does: for measurements.
	Durable bool
	// InvitationURL is the page that mails name; where it is empty, the hosts send no mails.
	InvitationURL string
	// On is where the server, its agent and PgBouncer run, and MetadataOn where the cluster of the metadata does. This process may
	// bind their addresses, though it does not have them.
	On, MetadataOn Place
	// AgentFlags and InitFlags are more flags of "pgherd agent" and "pgherd agent init". They come last and win.
	AgentFlags, InitFlags []string
}

// Stack is a whole pgherd. Agent, API and batch hosts are started by its methods; everything else runs after Start.
type Stack struct {
	options     Options
	tools       toolchain.Tools
	ca          *cluster.CA
	agentSecret string
	agentPort   int
	poolerPort  int
	socketDir   string
	// archiveDir is the folder of the socket by which the server hands over what it writes; empty: it keeps no archive.
	archiveDir string
	// accepted are the versions of the tools that are at hand, which an agent refuses where they have known holes.
	accepted []string
	// languages are those of the server, which an agent refuses too.
	languages []string

	// Metadata and Server are the clusters of the metadata and of the customers' databases. A server beside has no Metadata.
	Metadata, Server *cluster.Postgres
	// Pooler runs once the first agent has written its files.
	Pooler *cluster.Pooler

	firstAgent *Process
	serverID   string // as the service knows Server
	of         *Stack // whose metadata and keys it has, as Beside says; nil: its own

	mu        sync.Mutex
	processes []*Process
	hosts     int
}

// loopback is where everything listens, and PublicHost the name that customers connect to.
const (
	loopback   = "127.0.0.1"
	PublicHost = "localhost"
)

const metadataDatabase = "pgherd_metadata"

// serverSettings leave room for many databases with a client or two each, and let them move.
var serverSettings = map[string]string{
	"max_connections": "300", "max_locks_per_transaction": "670", "reserved_connections": "10",
	"wal_level": "logical", "max_wal_senders": "10",
}

// Start brings up both clusters, prepares them as an operator does, starts an agent and then PgBouncer, registers the server and
// switches features on. The caller calls Stop also where it fails.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{options: o, agentSecret: rand.Text()}
	for _, step := range []func(context.Context) error{
		s.prepareFiles, s.startMetadata, s.startServer, s.acceptLanguages, s.prepareMetadata, s.prepareServer, s.startFirstAgent,
		s.startPooler, s.checkPooler, s.register, s.enableFeatures,
	} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Beside starts another database server of the service, in the folder of the options, and registers it under a name. It has no
// metadata and no hosts of its own: those of s work for it. The caller calls its Stop also where this fails.
func (s *Stack) Beside(ctx context.Context, name string, o Options) (*Stack, error) {
	o.Binary, o.LeaseHold, o.TemplateDir = s.options.Binary, s.options.LeaseHold, s.options.TemplateDir
	b := &Stack{options: o, agentSecret: rand.Text(), of: s}
	for _, step := range []func(context.Context) error{
		b.prepareFiles, b.startServer, b.acceptLanguages, b.prepareServer, b.startFirstAgent, b.startPooler, b.checkPooler,
	} {
		if err := step(ctx); err != nil {
			return b, err
		}
	}
	var err error
	b.serverID, err = s.Register(ctx, name, b)
	return b, err
}

func (s *Stack) path(parts ...string) string {
	return filepath.Join(append([]string{s.options.Dir}, parts...)...)
}

func (s *Stack) prepareFiles(ctx context.Context) (err error) {
	if s.options.BackupDir == "" {
		s.options.BackupDir = s.path("backups")
	}
	if s.options.BlobDir == "" {
		s.options.BlobDir = s.options.BackupDir
	}
	if s.tools, err = toolchain.Find(); err != nil {
		return err
	}
	if s.accepted, err = Versions(ctx, s.tools); err != nil {
		return err
	}
	if s.ca, err = cluster.OpenCA(s.path("ca")); err != nil {
		return err
	}
	for _, name := range []string{"agent", "pooler"} {
		if _, err := s.ca.Issue(name, s.options.On.names()...); err != nil {
			return err
		}
	}
	for _, port := range []*int{&s.agentPort, &s.poolerPort} {
		if *port, err = cluster.FreePort(loopback); err != nil {
			return err
		}
	}
	if s.socketDir, err = cluster.SocketDir(s.path("sockets")); err != nil {
		return err
	}
	if s.options.Archive {
		if s.archiveDir, err = cluster.SocketDir(s.path("archive")); err != nil {
			return err
		}
	}
	return os.WriteFile(s.AgentSecretFile(), []byte(s.agentSecret+"\n"), 0o600)
}

// Versions is what PostgreSQL, pg_dump, PgBouncer and pgBackRest say of their versions.
func Versions(ctx context.Context, tools toolchain.Tools) (texts []string, err error) {
	for _, path := range []string{tools.Postgres, tools.PgDump, tools.PgBouncer, tools.PgBackRest} {
		text, err := floors.Said(ctx, path, nil)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (s *Stack) startMetadata(ctx context.Context) (err error) {
	settings := map[string]string{}
	if s.options.MetadataOn.Address != "" {
		settings["hba_file"] = s.path("metadata.hba")
		if err := admitNetwork(s.path("metadata.hba"), s.options.MetadataOn.Address); err != nil {
			return err
		}
	}
	s.Metadata, err = s.cluster(ctx, "metadata", settings, s.options.MetadataOn)
	return err
}

func (s *Stack) startServer(ctx context.Context) (err error) {
	settings := maps.Clone(serverSettings)
	if s.options.Archive {
		settings["archive_mode"], settings["full_page_writes"] = "on", "on"
	}
	on := s.options.On
	on.Address = "" // the agent takes its server on loopback alone
	s.Server, err = s.cluster(ctx, "server", settings, on)
	return err
}

func (s *Stack) cluster(ctx context.Context, name string, settings map[string]string, on Place) (*cluster.Postgres, error) {
	return cluster.Run(context.WithoutCancel(ctx), cluster.Options{
		Dir: s.path(name), Tools: s.tools, Settings: settings, Fast: !s.options.Durable, TemplateDir: s.options.TemplateDir,
		Host: on.Address, Start: on.Start,
	})
}

// prepareMetadata makes the metadata database and the key ring.
func (s *Stack) prepareMetadata(ctx context.Context) error {
	err := s.exec(ctx, s.Metadata.URL("postgres"), "CREATE DATABASE "+metadataDatabase)
	if err != nil {
		return err
	}
	if _, err := s.command(ctx, "migrate"); err != nil {
		return err
	}
	_, err = s.command(ctx, "admin", "secrets", "init")
	return err
}

// prepareServer is the one step that gets the superuser's connection. The server runs the program itself to hand over what it
// writes.
func (s *Stack) prepareServer(ctx context.Context) (err error) {
	program := s.options.Binary
	args := []string{"agent", "init", "--pg-dump", s.tools.PgDump, "--pgbouncer", s.tools.PgBouncer,
		"--pgbackrest", s.tools.PgBackRest}
	if s.options.Archive {
		if program, err = cluster.Reachable(program, s.archiveDir); err != nil {
			return err
		}
		args = append(args, "--archive-socket", s.archiveSocket())
	}
	_, err = s.runOn(ctx, s.options.On, program, []string{"PGHERD_SERVER_URL=" + s.Server.URL("postgres")},
		append(args, s.options.InitFlags...)...)
	return err
}

func (s *Stack) archiveSocket() string { return filepath.Join(s.archiveDir, "push") }

func (s *Stack) startFirstAgent(ctx context.Context) error {
	var err error
	if s.firstAgent, err = s.LaunchAgent(""); err != nil {
		return err
	}
	return s.AwaitAgent(ctx, s.firstAgent)
}

// FirstAgent is the one that Start started.
func (s *Stack) FirstAgent() *Process { return s.firstAgent }

func (s *Stack) startPooler(ctx context.Context) (err error) {
	s.Pooler, err = cluster.RunPooler(context.WithoutCancel(ctx), cluster.PoolerOptions{
		Ini: pooler.ConfigFile(s.path("pooler")), Host: s.options.On.address(), Port: s.poolerPort, Tools: s.tools,
		Start: s.options.On.Start,
	})
	return err
}

func (s *Stack) checkPooler(ctx context.Context) error {
	dsn, err := s.ConsoleDSN()
	if err != nil {
		return err
	}
	console, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	return errors.Join(cluster.CheckPooler(ctx, console), console.Close())
}

func (s *Stack) register(ctx context.Context) error {
	var err error
	s.serverID, err = s.Register(ctx, "first", s)
	return err
}

// Register adds the server of a stack, which may be another one, under a name. It returns the server's ID.
func (s *Stack) Register(ctx context.Context, name string, of *Stack) (id string, err error) {
	out, err := s.commandWith(ctx, []string{"PGHERD_AGENT_SECRET_FILE=" + of.AgentSecretFile()}, "admin", "--json",
		"server", "add", "--name", name, "--agent-url", of.AgentURL(), "--agent-ca-file", of.ca.CertFile(),
		"--public-host", of.options.On.host(), "--public-port", strconv.Itoa(of.poolerPort),
		"--connections", "0") // tests make many databases, and few connections to each
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"serverId"`
	}
	return made.ID, json.Unmarshal(out, &made)
}

// enableFeatures switches on what is off in a new installation.
func (s *Stack) enableFeatures(ctx context.Context) error {
	_, err := s.Admin(ctx, "certificate-key", "create")
	for _, name := range []string{
		"additional-roles", "extension-catalog", "restore", "clone", "delete", "deleted-recovery", "preview-recovery", "legacy-roles",
	} {
		_, one := s.Admin(ctx, "feature", "enable", name)
		err = errors.Join(err, one)
	}
	return err
}

// Stop ends whatever still runs.
func (s *Stack) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, p := range s.processes {
		failed = errors.Join(failed, p.Kill())
	}
	ctx := context.Background()
	if s.Pooler != nil {
		failed = errors.Join(failed, s.Pooler.Stop(ctx))
	}
	for _, c := range []*cluster.Postgres{s.Server, s.Metadata} {
		if c != nil {
			failed = errors.Join(failed, c.Stop(ctx, cluster.Immediate))
		}
	}
	return failed
}

// MetadataURL is the superuser's connection to the metadata.
func (s *Stack) MetadataURL() string {
	if s.of != nil {
		return s.of.MetadataURL()
	}
	return s.Metadata.URL(metadataDatabase)
}

// KeyringFile has the keys of the secrets in the metadata.
func (s *Stack) KeyringFile() string {
	if s.of != nil {
		return s.of.KeyringFile()
	}
	return s.path("keyring.json")
}

// CAFile is what customers trust.
func (s *Stack) CAFile() string { return s.ca.CertFile() }

// BackupDir is the agent's own folder of files.
func (s *Stack) BackupDir() string { return s.options.BackupDir }

// BlobDir is the folder that has backups, as files.
func (s *Stack) BlobDir() string { return s.options.BlobDir }

// MailboxDir is the folder that takes the mails.
func (s *Stack) MailboxDir() string { return s.path("mailbox") }

// PoolerDir is the folder of PgBouncer's files.
func (s *Stack) PoolerDir() string { return s.path("pooler") }

// PoolerAddress is where customers connect.
func (s *Stack) PoolerAddress() string {
	return net.JoinHostPort(s.options.On.host(), strconv.Itoa(s.poolerPort))
}

// PoolerURL is how a customer connects to an entry of the pooler: with TLS, and the server's name checked.
func (s *Stack) PoolerURL(entry, username, password string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(username, password), Host: s.PoolerAddress(), Path: "/" + entry,
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.CAFile()}, "connect_timeout": {"10"}}.Encode(),
	}
	return u.String()
}

// PsqlPath is psql.
func (s *Stack) PsqlPath() string { return s.tools.Psql }

// PgDumpPath is pg_dump.
func (s *Stack) PgDumpPath() string { return s.tools.PgDump }

// CredentialsFile holds the passwords of the platform's own accounts on the server.
func (s *Stack) CredentialsFile() string { return s.path("credentials.json") }

// ConsoleDSN is a connection to PgBouncer's admin console, through its socket as the agent's are.
func (s *Stack) ConsoleDSN() (string, error) {
	secrets, err := setup.ReadCredentials(s.CredentialsFile())
	return fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname=pgbouncer sslmode=disable",
		s.socketDir, s.poolerPort, setup.PoolerAdmin, secrets.PoolerAdminPassword), err
}

// AgentSecret is what the agent asks of the control plane.
func (s *Stack) AgentSecret() string { return s.agentSecret }

// AgentSecretFile is where the agent and the control plane read it.
func (s *Stack) AgentSecretFile() string { return s.path("agent-secret") }

// AgentURL is where the agent listens.
func (s *Stack) AgentURL() string {
	return "https://" + net.JoinHostPort(s.options.On.address(), strconv.Itoa(s.agentPort))
}

func (s *Stack) exec(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	if _, err = db.ExecContext(ctx, statement); err != nil {
		err = fmt.Errorf("%s: %w", statement, err)
	}
	return errors.Join(err, db.Close())
}

// environment is what every command of the program gets. Secrets go here, never into arguments.
func (s *Stack) environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "TZ=UTC",
		"PGHERD_METADATA_URL=" + s.MetadataURL(), "PGHERD_KEYRING_FILE=" + s.KeyringFile(),
		"PGHERD_CREDENTIALS_FILE=" + s.CredentialsFile(), "PGHERD_AGENT_SECRET_FILE=" + s.AgentSecretFile(),
		"PGHERD_ACCEPT_VERSIONS=" + strings.Join(s.accepted, ","),
	}
	if s.options.InvitationURL != "" {
		env = append(env, "PGHERD_MAILBOX_DIR="+s.MailboxDir(), "PGHERD_INVITATION_URL="+s.options.InvitationURL)
	}
	if len(s.languages) > 0 {
		env = append(env, "PGHERD_ACCEPT_LANGUAGES="+strings.Join(s.languages, ","))
	}
	if s.options.LeaseHold > 0 {
		env = append(env, "PGHERD_LEASE_HOLD="+s.options.LeaseHold.String())
	}
	return env
}
