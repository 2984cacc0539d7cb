package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Options say what cluster to run. Dir is the only one that must be set.
type Options struct {
	// Dir holds all of the cluster: its data, its superuser's password and its socket. Made where it does not exist.
	Dir string
	// Tools are found on the machine when they are left out.
	Tools toolchain.Tools
	// Host is the loopback address to listen on, 127.0.0.1 by default.
	Host string
	// Port is chosen freely when it is 0. A port in use is a *PortInUseError.
	Port int
	// Settings are parameters of PostgreSQL, such as max_connections, in place of the package's own.
	Settings map[string]string
	// Fast gives up durability over a crash of the machine (fsync), but not over a crash of PostgreSQL. For tests.
	Fast bool
	// TemplateDir keeps a cluster made by initdb, to copy new ones from in a tenth of the time. They share the superuser's
	// password, so it is for tests. None is kept when it is empty.
	TemplateDir string
	// Log gets what PostgreSQL logs. Dir/postgres.log does when it is nil.
	Log io.Writer
	// Start starts PostgreSQL's process, on the thread that it dies with; nil for exec's own. For tests that give it a network of
	// its own.
	Start func(*exec.Cmd) error
}

// StartLimit is how long a start may take, crash recovery included.
const StartLimit = 60 * time.Second

// StopLimit is how long a stop may take before PostgreSQL is killed.
const StopLimit = 30 * time.Second

// Superuser is the name of the login that initdb makes.
const Superuser = "postgres"

func (o *Options) complete() error {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Tools == (toolchain.Tools{}) {
		o.Tools, err = toolchain.Find()
	}
	return err
}

// maxSocketPath is what the address of a unix socket can hold, its closing NUL left out.
const maxSocketPath = 103

// SocketDir makes a folder for unix sockets that only the children's user may enter, at dir or, where a socket's path would be
// too long there, at a place below the system's folder for temporary files that is always the same for that dir.
func SocketDir(dir string) (string, error) {
	if len(filepath.Join(dir, ".s.PGSQL.65535")) > maxSocketPath {
		sum := sha256.Sum256([]byte(dir))
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("pgherd-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, Own(dir)
}
