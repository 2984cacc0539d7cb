package driver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

const loopback = "127.0.0.1"

// publicHost is what customers connect to: the name in the pooler's certificate.
const publicHost = "localhost"

// ground is what the real service stands on: the database server's PostgreSQL, another one for the metadata, and PgBouncer.
type ground struct {
	dir         string
	tools       toolchain.Tools
	program     string // the built pgherd
	server      *cluster.Postgres
	metadata    *cluster.Postgres
	metadataURL string
	pooler      *cluster.Pooler
	poolerPort  int
	ca          *cluster.CA
}

// raise starts both PostgreSQLs and builds the program. PgBouncer starts when the agent has written its files.
func raise(ctx context.Context, dir string) (g *ground, err error) {
	g = &ground{dir: dir, program: filepath.Join(dir, "pgherd")}
	if g.tools, err = toolchain.Find(); err != nil {
		return nil, err
	}
	root, err := toolchain.Root()
	if err != nil {
		return nil, err
	}
	if _, err := run(root, "go", nil, "build", "-o", g.program, "./hosts/pgherd"); err != nil {
		return nil, err
	}
	if g.ca, err = cluster.OpenCA(g.path("ca")); err != nil {
		return nil, err
	}
	if g.server, err = g.postgres(ctx, "server"); err != nil {
		return nil, err
	}
	if g.metadata, err = g.postgres(ctx, "metadata"); err != nil {
		return nil, err
	}
	if g.poolerPort, err = cluster.FreePort(loopback); err != nil {
		return nil, err
	}
	return g, g.makeMetadata(ctx)
}

func (g *ground) path(parts ...string) string {
	return filepath.Join(append([]string{g.dir}, parts...)...)
}

func (g *ground) postgres(ctx context.Context, name string) (*cluster.Postgres, error) {
	o := cluster.Options{
		Dir: g.path(name), Tools: g.tools, Fast: true, Settings: map[string]string{"max_connections": "300"},
	}
	if cache, err := os.UserCacheDir(); err == nil {
		o.TemplateDir = filepath.Join(cache, "pgherd", "clusters")
	}
	return cluster.Run(ctx, o)
}

// makeMetadata makes an empty metadata database with a login of its own.
func (g *ground) makeMetadata(ctx context.Context) error {
	db, err := sql.Open("postgres", g.metadata.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it only gives its connections back
	password := rand.Text()
	g.metadataURL = g.metadata.URLFor("pgherd_metadata", password, "pgherd_metadata")
	for _, step := range []string{
		"CREATE ROLE pgherd_metadata LOGIN PASSWORD " + pq.QuoteLiteral(password),
		"CREATE DATABASE pgherd_metadata OWNER pgherd_metadata",
	} {
		if _, err := db.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// startPooler starts PgBouncer on the files that the agent has written.
func (g *ground) startPooler(ctx context.Context) (err error) {
	g.pooler, err = cluster.RunPooler(ctx, cluster.PoolerOptions{
		Ini: pooler.ConfigFile(g.path("pooler")), Host: loopback, Port: g.poolerPort, Tools: g.tools,
	})
	return err
}

// poolerUser is the option that names PgBouncer's user, where it is not ours.
func poolerUser() ([]string, error) {
	uid, _, switched, err := cluster.ChildUser()
	if err != nil || !switched {
		return nil, err
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return nil, err
	}
	return []string{"--pooler-user", u.Username}, nil
}

// stop stops what was started.
func (g *ground) stop(ctx context.Context) (err error) {
	if g.pooler != nil {
		err = g.pooler.Stop(ctx)
	}
	for _, pg := range []*cluster.Postgres{g.server, g.metadata} {
		if pg != nil {
			err = errors.Join(err, pg.Stop(ctx, cluster.Immediate))
		}
	}
	return err
}

// freeAddress is a loopback address with a port that is free now.
func freeAddress() (string, error) {
	port, err := cluster.FreePort(loopback)
	return net.JoinHostPort(loopback, strconv.Itoa(port)), err
}

// freeAddresses are several, all different.
func freeAddresses(n int) (list []string, err error) {
	seen := map[string]bool{}
	for len(list) < n {
		address, err := freeAddress()
		if err != nil {
			return nil, fmt.Errorf("free ports: %w", err)
		}
		if !seen[address] {
			seen[address], list = true, append(list, address)
		}
	}
	return list, nil
}
