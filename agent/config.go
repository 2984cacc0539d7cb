// Package agent assembles the agent: the one program that works on a database server for the control plane.
package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/archive/pgbackrest"
	agentbackup "github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/drill"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/heritage"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/past"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/poolermem"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/agent/uploads"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/trace"
)

// Config is an agent's configuration.
type Config struct {
	// Name is what this server is called in the log; empty leaves it out.
	Name string
	// Listen is the address of the HTTPS listener; Deps.Listener takes its place.
	Listen string
	// Certificate is the listener's, as in tls.Config.GetCertificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error) `json:"-"`
	// Secrets are the control plane's bearer tokens: while one is exchanged, the new one and the former. It is called at each
	// request, and never has none.
	Secrets func() []string `json:"-"`
	// CredentialsFile is what agent init wrote.
	CredentialsFile string

	// PostgresHost is a loopback address or a socket folder.
	PostgresHost string
	PostgresPort int
	// Connections is how many connections to its database the agent uses for commands at a time; 0 means the most, 5.
	Connections int
	// Pooler says where PgBouncer is and how it runs. The agent fills in passwords, the names of accounts and of the maintenance
	// database, the address of PostgreSQL, and where it comes in as customers do.
	Pooler pooler.Settings
	// PoolerOwner is the system user of PgBouncer and of pg_dump, for an agent that runs as root.
	PoolerOwner *pooler.Owner

	// PoolerMemory is how many bytes of memory PgBouncer may have before clients are ended for what they hold; 0 means
	// poolermem.DefaultBound.
	PoolerMemory int64

	// BackupDir is a folder of this agent alone, for what arrives and is on its way to Blobs.
	BackupDir string
	// Blobs is where backups are kept; nil: in BackupDir.
	Blobs blob.Store `json:"-"`
	// Bucket is the object store of Blobs, in which the archive is too; nil: both are in folders.
	Bucket *s3.Config
	// Archive has the agent keep an archive of what the server writes; nil: it keeps none.
	Archive *Archive
	// BackupPatience is how long a backup waits for Blobs that are away; 0 means 15 min.
	BackupPatience time.Duration
	// BackupReserve is how many bytes backups leave free, on their file system and on the databases'; 0 means 1 GiB.
	BackupReserve int64
	// BackupLimits bound how long a dump and its verification may take.
	BackupLimits backup.Limits
	// ArrivalTime is how long each MiB of an upload may take to arrive; 0 means 5 min.
	ArrivalTime time.Duration
	// UploadTime is how long an upload may take to be loaded; 0 means 1 h.
	UploadTime time.Duration
	// BackupCountsOnly takes no digests of contents: then copies are compared by numbers of rows only.
	BackupCountsOnly bool
	// BackupPause is before a backup is tried again in which PostgreSQL or the agent went down. It grows. 0 means 1 s.
	BackupPause time.Duration
	// Jobs is how many backups and other long jobs run at a time, of which one account has at most half; 0 means 4.
	Jobs int
	// ExtensionLockWait is how long the change of an extension waits for a lock of the customer's, and ExtensionPatience how long it
	// tries again; 0 means 1 s and 20 s.
	ExtensionLockWait, ExtensionPatience time.Duration
	// Commons say when sessions are ended that take too much of what all databases share.
	Commons commons.Limits
	// PgDump is the path of pg_dump 16 or later.
	PgDump string
	// DataDir is on the databases' file system. The health report contains its figures, and a backup is verified only if it has
	// room for a copy of the database.
	DataDir string
	// ChecksEvery is the longest pause between two looks at what the health report is about; 0 means the pauses of each check.
	ChecksEvery time.Duration
	// Version of the program, for capabilities.
	Version string
	// Versions says what to do about a PostgreSQL, PgBouncer or pg_dump with known holes.
	Versions floors.Policy
	// Languages says what to do about trusted procedural languages besides PL/pgSQL.
	Languages floors.Policy
}

// Deps are an agent's optional dependencies.
type Deps struct {
	Log *zap.Logger
	// Metrics answers GET /metrics of the listener, for who has the secret; nil: nobody does.
	Metrics  http.Handler
	Listener net.Listener
	// Tracer continues the traces of commands; nil: there are none.
	Tracer trace.Tracer
	Now    func() time.Time
}

// Archive says how the archive of a server is kept. agent init has had PostgreSQL hand over what it writes.
type Archive struct {
	// PgBackRest and Postgres are the absolute paths of the programs pgbackrest and postgres, which is the server's own.
	PgBackRest, Postgres string
	// Socket is where PostgreSQL hands segments over.
	Socket string
	// Repository is the folder in which the archive is, where there is no Bucket; empty: one in BackupDir.
	Repository string
	Plan       archive.Plan
}

// archiveFolder is the name of the archive's folder, where backups and the archive's own files are.
const archiveFolder = "archive"

// repositoryFolder is the name of the folder in it that has the archive where there is no object store.
const repositoryFolder = "repository"

// archiveDir is the folder of the archive's own files.
func (c *Config) archiveDir() string { return filepath.Join(c.BackupDir, archiveFolder) }

// blobs are where backups are kept.
func (c *Config) blobs() blob.Store {
	if c.Blobs == nil {
		return blob.Without(blob.NewFolder(c.BackupDir), archiveFolder)
	}
	return blob.Without(c.Blobs, archiveFolder)
}

// storage is where backups are kept, as command.Inherit has it.
func (c *Config) storage() string {
	if c.Bucket != nil {
		return c.Bucket.Prefix
	}
	return c.BackupDir
}

// blobsOf are the blobs that another agent has kept in such a place, for reading.
func (c *Config) blobsOf(storage string) (blob.Store, error) {
	if c.Bucket == nil {
		if info, err := os.Stat(storage); err != nil || !info.IsDir() || !filepath.IsAbs(storage) {
			return nil, fmt.Errorf("%q is no folder of this machine", storage)
		}
		return blob.NewFolder(storage), nil
	}
	of := *c.Bucket
	of.Prefix = storage
	return s3.New(of)
}

// newHeritage makes what remembers what servers that are gone have left.
func (c *Config) newHeritage(own *archive.Archive, files *store.Store) *heritage.Heritage {
	return heritage.New(heritage.Config{
		Dir: filepath.Join(c.archiveDir(), "heritage"), Own: c.storage(), Blobs: c.blobsOf, Archive: own, Files: files,
	})
}

// newArchive makes the archive; nil where none is kept.
func (c *Config) newArchive(
	server *sessions.Server, password string, d Deps, replaced func(error),
) (*archive.Archive, error) {
	if c.Archive == nil {
		return nil, nil
	}
	own := *c.Archive
	if os.Geteuid() == 0 { // whom the programs run as goes through
		if err := errors.Join(os.MkdirAll(c.BackupDir, 0o711), os.Chmod(c.BackupDir, 0o711)); err != nil {
			return nil, err
		}
	}
	return archive.New(archive.Config{
		Dir: c.archiveDir(), Socket: own.Socket, Postgres: own.Postgres, Plan: own.Plan, Server: server, Log: d.Log, Crash: c.crash,
		Replaced: replaced,
		Open: func(p archive.Place) (archive.Engine, error) {
			repository, bucket := cmp.Or(own.Repository, filepath.Join(c.archiveDir(), repositoryFolder)), c.Bucket
			switch {
			case bucket != nil && p.Lost():
				of := *bucket
				of.Prefix, bucket = p.Storage, &of
				fallthrough
			case bucket != nil:
				repository = archiveFolder + "/" + p.Installation
			case p.Lost():
				var err error
				if repository, err = repositoryIn(p); err != nil {
					return nil, err
				}
			}
			return pgbackrest.New(pgbackrest.Settings{
				Program: own.PgBackRest, Dir: filepath.Join(c.archiveDir(), p.Folder()), As: p.As, Repository: repository, S3: bucket,
				Lost: p.Lost(), Log: d.Log,
				Passphrase: p.Passphrase, Days: own.Plan.Days(),
				Postgres: pgbackrest.Postgres{
					DataDir: p.DataDir, Host: c.PostgresHost, Port: c.PostgresPort, User: setup.AgentLogin, Password: password,
					Database: setup.MaintenanceDatabase,
				},
			})
		},
	})
}

// repositoryIn is the folder of the archive that a server which is gone has left in its folder. Unlike a bucket, a folder has one
// archive, whoever's it is. POINT_NOT_RECOVERABLE: it has none, or that of another server.
func repositoryIn(p archive.Place) (string, error) {
	owner, err := store.OwnerOf(context.Background(), blob.NewFolder(p.Storage))
	path := filepath.Join(p.Storage, archiveFolder, repositoryFolder)
	if err == nil || fault.Has(err, fault.BackupNotFound) { // a server need not have made a backup
		_, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && owner != "" && owner != p.Installation {
		return "", fault.New(fault.PointNotRecoverable, "there is no archive of the server %s in %s", p.Installation, p.Storage)
	}
	return path, err
}

func (c *Config) complete() (setup.Credentials, error) {
	if c.PostgresHost == "" || c.PostgresPort == 0 || c.BackupDir == "" || c.PgDump == "" || c.DataDir == "" {
		return setup.Credentials{}, errors.New("PostgreSQL's host and port, the backup folder, pg_dump and the data folder must be set")
	}
	if ip, err := netip.ParseAddr(c.PostgresHost); !filepath.IsAbs(c.PostgresHost) && c.PostgresHost != "localhost" &&
		(err != nil || !ip.IsLoopback()) {
		return setup.Credentials{}, fmt.Errorf("--postgres-host: it is %s and must be a loopback address or the folder of a socket, "+
			"since the agent and PgBouncer speak to it without TLS", c.PostgresHost)
	}
	if c.Certificate == nil {
		return setup.Credentials{}, errors.New("the agent's certificate must be set")
	}
	if c.Jobs < 0 {
		return setup.Credentials{}, fmt.Errorf("%d jobs at a time are too few; there must be 1 or more", c.Jobs)
	}
	if err := errors.Join(c.Versions.CheckVersions(), c.BackupLimits.Check()); err != nil {
		return setup.Credentials{}, err
	}
	if err := c.Languages.CheckLanguages(); err != nil {
		return setup.Credentials{}, err
	}
	secrets, err := setup.ReadCredentials(c.CredentialsFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; pgherd agent init writes it", err)
	}
	if err != nil {
		return secrets, err
	}
	p := &c.Pooler
	c.PoolerMemory = cmp.Or(c.PoolerMemory, poolermem.DefaultBound)
	p.ServerHost, p.ServerPort, p.MaintenanceDatabase = c.PostgresHost, c.PostgresPort, setup.MaintenanceDatabase
	p.AuthUser, p.AuthPassword = setup.PoolerLogin, secrets.PoolerPassword
	p.AdminUser, p.AdminPassword = setup.PoolerAdmin, secrets.PoolerAdminPassword
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	if p.Outside, err = pooler.OutsideOf(ctx, p.ListenAddresses); err != nil {
		err = fmt.Errorf("--pooler-listen: %w; PgBouncer does not start with that either", err)
	}
	return secrets, err
}

// lookUpTime bounds the look-up of the names that PgBouncer listens on.
const lookUpTime = 10 * time.Second

// dumpAs is the system user of pg_dump where that is not the agent's own.
func (c *Config) dumpAs() *syscall.Credential {
	if o := c.PoolerOwner; o != nil && os.Geteuid() == 0 { // nobody else can change users
		return &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)}
	}
	return nil
}

func (c *Config) dumpTool() pgdump.Tool { return pgdump.Tool{Path: c.PgDump, As: c.dumpAs()} }

// place is where this agent runs, as far as another one is told.
func (c *Config) place() ledger.Place {
	machine, _ := os.Hostname() // empty where the system does not say it
	return ledger.Place{Machine: machine, Folders: []string{c.Pooler.Dir, c.BackupDir}}
}

func (c *Config) sessions(password string, inCharge func(context.Context) error) *sessions.Server {
	return &sessions.Server{
		Host: c.PostgresHost, Port: c.PostgresPort, User: setup.AgentLogin, Password: password,
		Maintenance: setup.MaintenanceDatabase, InCharge: inCharge,
	}
}

// CrashPoints lists every point where PGHERD_CRASH_AT can kill an agent: those of its flows and those of a backup.
func CrashPoints() []string {
	points := slices.Clone(crash.Points)
	for _, p := range slices.Concat(
		agentbackup.CrashPoints, copies.CrashPoints, uploads.CrashPoints,
		archive.CrashPoints, drill.CrashPoints, past.CrashPoints,
	) {
		points = append(points, backupPoint(p))
	}
	return points
}

func backupPoint(p string) string { return "agent." + p }

// crash handles the points of backups like the agent's own.
func (c *Config) crash(point string) { crash.Point(backupPoint(point)) }
