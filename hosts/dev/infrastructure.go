package dev

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// infrastructure is what the hosts run on: PostgreSQL, PgBouncer, certificates and secrets.
type infrastructure struct {
	settings    Settings
	tools       toolchain.Tools
	ca          *cluster.CA
	postgres    *cluster.Postgres
	pooler      *cluster.Pooler
	agentSecret string
	metadataURL string
	seed        seed
	logInURL    string   // of the first person, which works once
	warnings    []string // of agent init, among others
	// archive is how the agent keeps the server's archive, and archived what PostgreSQL does for it; nil: none is kept.
	archive  *agent.Archive
	archived *setup.Archive
}

const metadataDatabase = "pgherd_metadata"

// serverSettings leave room for a few databases at their plan's connection cap, the metadata and the agent, and for the dump of a
// database with many tables: it locks each one, and its sequences, at the same time.
var serverSettings = map[string]string{
	"max_connections":           "300",
	"max_locks_per_transaction": "670",
	"reserved_connections":      "10",
	"wal_level":                 "logical",
}

// startInfrastructure starts the first server, migrates the metadata database on it, and creates the key ring if there is none.
func (s Settings) startInfrastructure(ctx context.Context, tools toolchain.Tools) (*infrastructure, error) {
	ca, err := cluster.OpenCA(s.path("ca"))
	if err != nil {
		return nil, err
	}
	g, err := s.startServer(ctx, tools, ca)
	if err != nil {
		return nil, err
	}
	if err := g.prepareInstallation(ctx); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

// startServer starts PostgreSQL and prepares it for the agent. All servers have certificates of the same CA.
func (s Settings) startServer(ctx context.Context, tools toolchain.Tools, ca *cluster.CA) (g *infrastructure, err error) {
	g = &infrastructure{settings: s, tools: tools, ca: ca}
	if g.agentSecret, err = keptSecret(s.agentSecretFile()); err != nil {
		return nil, err
	}
	if err := g.keepArchive(); err != nil {
		return nil, err
	}
	set := maps.Clone(serverSettings)
	if g.archived != nil {
		set["archive_mode"] = "on"
	}
	// Ctrl-C stops the hosts first: PostgreSQL does not follow ctx.
	g.postgres, err = cluster.Run(context.WithoutCancel(ctx), cluster.Options{
		Dir: s.path("postgres"), Tools: tools, Port: s.PostgresPort, Settings: set,
	})
	if err != nil {
		return nil, err
	}
	if err := g.prepare(ctx); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

func (g *infrastructure) prepare(ctx context.Context) error {
	s := g.settings
	report, err := setup.Init(ctx, setup.Options{
		DSN: g.postgres.URL("postgres"), CredentialsFile: s.credentialsFile(), Versions: developmentVersions,
		Languages: developmentLanguages, Archive: g.archived,
	})
	g.warnings = append(g.warnings, report.Warnings...)
	if err != nil {
		return fmt.Errorf("preparing PostgreSQL: %w", err)
	}
	return nil
}

// prepareInstallation is for the first server, which has the metadata.
func (g *infrastructure) prepareInstallation(ctx context.Context) error {
	if err := g.prepareMetadata(ctx); err != nil {
		return fmt.Errorf("preparing the metadata database: %w", err)
	}
	if _, err := secretbox.Create(g.settings.keyringFile()); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// prepareMetadata makes the metadata database with a login of its own, and brings its schema up to date.
func (g *infrastructure) prepareMetadata(ctx context.Context) error {
	password, err := keptSecret(g.settings.path("metadata-password"))
	if err != nil {
		return err
	}
	db, err := sql.Open("postgres", g.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	var exists bool
	const look = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1), EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	var existsDatabase bool
	if err := db.QueryRowContext(ctx, look, metadataDatabase).Scan(&exists, &existsDatabase); err != nil {
		return err
	}
	var steps []string
	if !exists {
		steps = append(steps, "CREATE ROLE "+metadataDatabase+" LOGIN PASSWORD "+pq.QuoteLiteral(password))
	}
	if !existsDatabase {
		steps = append(steps, "CREATE DATABASE "+metadataDatabase+" OWNER "+metadataDatabase)
	}
	steps = append(steps, "REVOKE CONNECT, TEMPORARY ON DATABASE "+metadataDatabase+" FROM PUBLIC")
	for _, step := range steps {
		if _, err := db.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	g.metadataURL = g.postgres.URLFor(metadataDatabase, password, metadataDatabase)
	return postgres.MigrateStopped(ctx, g.metadataURL)
}

// startPooler starts PgBouncer on the files that the agent has written.
func (g *infrastructure) startPooler(ctx context.Context) (err error) {
	g.pooler, err = cluster.RunPooler(context.WithoutCancel(ctx), cluster.PoolerOptions{
		Ini: pooler.ConfigFile(g.settings.path("pooler")), Host: loopback, Port: g.settings.PoolerPort, Tools: g.tools,
	})
	return err
}

func (g *infrastructure) caText() (string, error) {
	text, err := os.ReadFile(g.ca.CertFile())
	return string(text), err
}

// children are the processes of the infrastructure, for a supervisor.
func (g *infrastructure) children() []child {
	return []child{
		{
			"PostgreSQL" + g.settings.of, g.settings.path("postgres", "postgres.log"), g.postgres.Recover, g.postgres.Done,
			g.postgres.Exit,
		},
		{"PgBouncer" + g.settings.of, g.settings.poolerLog(), g.pooler.Start, g.pooler.Done, g.pooler.Exit},
	}
}

// stop stops what was started, the pooler first.
func (g *infrastructure) stop() {
	if g.pooler != nil {
		_ = g.pooler.Stop(context.Background()) // what is left of it dies with this process
	}
	if g.postgres != nil {
		_ = g.postgres.Stop(context.Background(), cluster.Fast)
	}
}

// keptSecret reads a random secret from a file of the owner's, and makes it at the first start.
func keptSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := rand.Text() + rand.Text()
	return secret, writeFile(file, []byte(secret+"\n"))
}
