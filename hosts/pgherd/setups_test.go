package main_test

import (
	"os"
	"path/filepath"
)

// set is one changed setting.
func set(name, value string) map[string]string { return map[string]string{"PGHERD_" + name: value} }

// ofControlPlane are set-ups of API, batch host and admin commands.
func (s *setup) ofControlPlane() []wrong {
	nobody := closed()
	ring := mustRead(s.good["PGHERD_KEYRING_FILE"])
	metadata := func(password, address, database string) map[string]string {
		return set("METADATA_URL", s.metadataURL("pgherd", password, address, database))
	}
	unreleased := metadata(metadataPassword, s.address, "unreleased")
	return []wrong{
		{"no metadata", "api", set("METADATA_URL", ""), []string{"--metadata-url", "PGHERD_METADATA_URL", "required"}},
		{"no URL", "batch", set("METADATA_URL", "postgresql://pgherd:"+metadataPassword+"@host:port/x"), []string{"--metadata-url"}},
		{"a file that is not there", "api", map[string]string{"PGHERD_METADATA_URL": "", "PGHERD_METADATA_URL_FILE": "/nowhere"},
			[]string{"--metadata-url"}},
		{"metadata that nobody serves", "api", metadata(metadataPassword, nobody, "pgherd"),
			[]string{"--metadata-url", nobody, "start PostgreSQL there, or correct host and port"}},
		{"a wrong password", "api", metadata("wr0ng", s.address, "pgherd"),
			[]string{"--metadata-url", s.address, "password", "correct the user and the password in the URL"}},
		{"no such database", "batch", metadata(metadataPassword, s.address, "none"),
			[]string{"--metadata-url", s.address, "none", "make the database there"}},
		{"no TLS at the metadata", "api", set("METADATA_URL", "postgresql://pgherd:"+metadataPassword+"@"+s.address+"/pgherd"),
			[]string{"--metadata-url", s.address, "sslmode"}},
		{"no schema", "api", metadata(metadataPassword, s.address, "empty"), []string{"pgherd migrate"}},
		{"an unreleased schema at an API host", "api", unreleased, []string{"--metadata-url", "development version", "make clean-dev"}},
		{"an unreleased schema at a batch host", "batch", unreleased, []string{"--metadata-url", "development version"}},
		{"an unreleased schema at the operator's", "admin certificate-key create", unreleased, []string{"development version"}},
		{"an unreleased schema to migrate", "migrate", unreleased, []string{"--metadata-url", "development version"}},
		{"no key ring", "api", set("KEYRING_FILE", ""), []string{"--keyring-file", "required"}},
		{"a key ring that is not there", "batch", set("KEYRING_FILE", "/nowhere"), []string{"--keyring-file", "/nowhere"}},
		{"a key ring that others can read", "api", set("KEYRING_FILE", s.written("open.json", string(ring), 0o644)),
			[]string{"--keyring-file", "open.json", "0600"}},
		{"no key ring at all", "api", set("KEYRING_FILE", s.written("none.json", "{}", 0o600)),
			[]string{"--keyring-file", "none.json"}},
		{"another installation's key ring", "batch", set("KEYRING_FILE", s.otherRing()),
			[]string{"--keyring-file", "does not have the key"}},
		{"networks that are none", "batch", set("WEBHOOK_REFUSED_NETWORKS", "10.0.0"),
			[]string{"--webhook-refused-networks", "10.0.0"}},
		{"too short a retention", "batch", set("KEEP_OPERATIONS", "1h"), []string{"--keep-operations"}},
		{"clear text", "api --listen 0.0.0.0:0 --tls-cert-file= --tls-key-file=",
			map[string]string{"PGHERD_TLS_CERT_FILE": "", "PGHERD_TLS_KEY_FILE": ""},
			[]string{"--listen", "--tls-cert-file", "--insecure-listen"}},
		{"clear text for all", "api --listen :0 --tls-cert-file= --tls-key-file=",
			map[string]string{"PGHERD_TLS_CERT_FILE": "", "PGHERD_TLS_KEY_FILE": ""},
			[]string{"--listen", "--tls-cert-file", "--insecure-listen"}},
		{"a certificate without key", "api", set("TLS_KEY_FILE", ""), []string{"--tls-cert-file", "--tls-key-file"}},
		{"a key of another certificate", "api", set("TLS_KEY_FILE", s.file("ca/ca.key")),
			[]string{"--tls-cert-file (or PGHERD_TLS_CERT_FILE)", "ca.key do not fit together", "give the key"}},
		{"a key that is none", "api", set("TLS_KEY_FILE", s.good["PGHERD_TLS_CERT_FILE"]),
			[]string{"--tls-key-file", "no private key"}},
		{"a certificate that is none", "api", set("TLS_CERT_FILE", s.good["PGHERD_KEYRING_FILE"]),
			[]string{"--tls-cert-file", "keyring.json holds no certificate in PEM"}},
		{"a CA that is not there", "batch", map[string]string{"PGHERD_SMTP_ADDRESS": "mail:25", "PGHERD_SMTP_CA_FILE": "/nowhere"},
			[]string{"--smtp-ca-file (or PGHERD_SMTP_CA_FILE): /nowhere: no such file", "give a file"}},
		{"a setting that is misspelt", "batch", set("METADATA_ULR", "x"),
			[]string{"PGHERD_METADATA_ULR", "did you mean PGHERD_METADATA_URL?"}},
		{"a misspelt setting of the operator's", "admin server list", set("METDATA_URL", "x"),
			[]string{"did you mean PGHERD_METADATA_URL?"}},
		{"a certificate that is not there", "api", set("TLS_CERT_FILE", "/nowhere"), []string{"--tls-cert-file", "/nowhere"}},
		{"an address in use", "api", set("LISTEN", s.taken), []string{"--listen", s.taken, "another"}},
		{"an operations address in use", "batch", set("OPS_LISTEN", s.taken), []string{"--ops-listen", s.taken, "another"}},
		{"a proxy that is no network", "api", set("TRUSTED_PROXIES", "10.0.0"), []string{"--trusted-proxies", "10.0.0"}},
		{"a proxy of IPv4 in IPv6", "api", set("TRUSTED_PROXIES", "::ffff:10.0.0.0/104"), []string{"--trusted-proxies", "::ffff:"}},
		{"an unknown limit", "api", set("RATE_LIMITS", "reads=1/1m"), []string{"--rate-limits", "reads"}},
		{"an unknown limit of a dashboard", "dashboard --dashboard-url https://db.example.com", set("RATE_LIMITS", "reads=1/1m"),
			[]string{"--rate-limits", "reads"}},
		{"a setting of development", "batch", set("WEBHOOK_CA_FILE", "/x"), []string{"PGHERD_WEBHOOK_CA_FILE", "development"}},
		{"an unknown schedule", "api", set("DEFAULT_SCHEDULE", "weekly"), []string{"--default-schedule", "daily or none"}},
		{"a PostgreSQL that is too old", "api", set("DEFAULT_POSTGRES", "15"), []string{"--default-postgres", "16 to 18"}},
		{"an unknown plan", "batch", set("UNVERIFIED_PLANS", "gold"), []string{"--unverified-plans", "free, pro or business"}},
		{"an unknown plan of recoveries", "api", set("PITR", "gold=1"), []string{"--pitr", "free, pro or business"}},
		{"no number", "api", set("MAX_CONNECTIONS", "many"), []string{"PGHERD_MAX_CONNECTIONS", "--max-connections", "a whole number"}},
		{"no mail server", "batch", set("SMTP_ADDRESS", "mail"), []string{"smtp", "host:port"}},
		{"an unknown log level", "api", set("LOG_LEVEL", "loud"), []string{"--log-level", "loud", "debug, info, warn or error"}},
		{"admin without a key ring", "admin certificate-key create", set("KEYRING_FILE", ""), []string{"--keyring-file"}},
	}
}

// ofAgent are set-ups of the agent.
func (s *setup) ofAgent() []wrong {
	open := s.file("open")
	_ = os.Mkdir(open, 0o755)
	archive := func(socket, archiver, server string) map[string]string {
		return map[string]string{
			"PGHERD_ARCHIVE_SOCKET": socket, "PGHERD_PGBACKREST": archiver, "PGHERD_POSTGRES_PROGRAM": server,
		}
	}
	const there = "/bin/sh"
	program := func(version string) string {
		_ = os.Chmod(filepath.Dir(s.dir), 0o755) // for whom the agent asks it as
		return s.written("postgres "+version, "#!/bin/sh\necho 'postgres (PostgreSQL) "+version+"'\n", 0o755)
	}
	return []wrong{
		{"no pgBackRest", "agent", archive("/push", "/nowhere", there), []string{"--pgbackrest", "/nowhere"}},
		{"no program of the server", "agent", archive("/push", there, "/nowhere"), []string{"--postgres-program", "/nowhere"}},
		{"no program of a server", "agent", archive(s.file("push"), there, there), []string{"--postgres-program", "/bin/sh --version"}},
		{"a folder for a program", "agent", archive(s.file("push"), there, "/bin"), []string{"--postgres-program", "is a directory"}},
		{"the program of an old server", "agent", archive(s.file("push"), there, program("15.4")),
			[]string{"--postgres-program", "it is PostgreSQL 15.4, and servers have PostgreSQL 16 to 18"}},
		{"the program of a new server", "agent", archive(s.file("push"), there, program("19.1")),
			[]string{"--postgres-program", "it is PostgreSQL 19.1"}},
		{"no folder of the archive", "agent", archive("/nowhere/push", there, there), []string{"--archive-socket", "/nowhere"}},
		{"no secret", "agent", set("AGENT_SECRET", ""), []string{"--agent-secret-file", "required"}},
		{"a short secret", "agent", set("AGENT_SECRET", "0123456789"), []string{"PGHERD_AGENT_SECRET", "openssl rand -hex 32"}},
		{"no agent init", "agent", set("CREDENTIALS_FILE", "/nowhere"), []string{"--credentials-file", "pgherd agent init"}},
		{"credentials that others can read", "agent", set("CREDENTIALS_FILE", s.written("c1.json", "{}", 0o644)),
			[]string{"--credentials-file", "c1.json", "0600"}},
		{"no credentials", "agent", set("CREDENTIALS_FILE", s.written("c2.json", "{}", 0o600)),
			[]string{"--credentials-file", "c2.json", "agent init"}},
		{"a PostgreSQL elsewhere", "agent", set("POSTGRES_HOST", "10.0.0.1"), []string{"--postgres-host", "10.0.0.1", "loopback"}},
		{"no port", "agent", set("POSTGRES_PORT", "70000"), []string{"--postgres-port", "65535"}},
		{"no pg_dump", "agent", set("PG_DUMP", "/nowhere"), []string{"--pg-dump", "/nowhere"}},
		{"no data folder", "agent", set("DATA_DIR", "/nowhere"), []string{"--data-dir", "/nowhere"}},
		{"no folder of backups", "agent", set("BACKUP_DIR", "/nowhere/backups"), []string{"--backup-dir", "/nowhere"}},
		{"no folder of PgBouncer", "agent", set("POOLER_DIR", "/nowhere/pooler"), []string{"--pooler-dir", "/nowhere"}},
		{"no folder of sockets", "agent", set("POOLER_SOCKET_DIR", s.written("file", "", 0o600)),
			[]string{"--pooler-socket-dir", "no folder"}},
		{"an open folder of sockets", "agent", set("POOLER_SOCKET_DIR", open), []string{"--pooler-socket-dir", open, "0700"}},
		{"a small packet", "agent", set("POOLER_MAX_PACKET", "1"), []string{"--pooler-max-packet", "1048576"}},
		{"a single job", "agent", set("JOBS", "1"), []string{"--jobs", "1 is not from 2"}},
		{"little memory", "agent", set("POOLER_MEMORY", "1"), []string{"--pooler-memory", "67108864"}},
		{"an unknown user", "agent", set("POOLER_USER", "nobody-of-that-name"), []string{"--pooler-user", "nobody-of-that-name"}},
		{"PgBouncer as root", "agent", set("POOLER_USER", "root"), []string{"--pooler-user", "root"}},
		{"a name that is none", "agent", set("POOLER_LISTEN", "db..example.com"), []string{"--pooler-listen", "db..example.com"}},
		{"a key of another certificate of PgBouncer", "agent", set("POOLER_TLS_KEY_FILE", s.file("ca/ca.key")),
			[]string{"--pooler-tls-key-file", "ca.key do not fit together"}},
		{"a misspelt setting of the agent", "agent", set("DATADIR", "/x"), []string{"did you mean PGHERD_DATA_DIR?"}},
		{"no certificate of PgBouncer", "agent", set("POOLER_TLS_CERT_FILE", "/nowhere"),
			[]string{"--pooler-tls-cert-file", "/nowhere"}},
		{"an agent's address in use", "agent", set("LISTEN", s.taken), []string{"--listen", s.taken, "another"}},
		{"a version that is none", "agent", set("ACCEPT_VERSIONS", "16"), []string{"--accept-versions", "PgBouncer"}},
	}
}

// ofInit are set-ups of agent init.
func (s *setup) ofInit() []wrong {
	nobody := closed()
	url := func(login, password, address, rest string) map[string]string {
		return set("SERVER_URL", "postgresql://"+login+":"+password+"@"+address+"/postgres"+rest)
	}
	const plain = "?sslmode=disable"
	return []wrong{
		{"init for an unknown plan", "agent init", set("LARGEST_PLAN", "gold"), []string{"--largest-plan", "free, pro or business"}},
		{"init at nobody", "agent init", url("postgres", s.server.Password(), nobody, plain), []string{"--server-url", nobody}},
		{"init without TLS", "agent init", url("postgres", s.server.Password(), s.address, ""),
			[]string{"--server-url", "sslmode=disable"}},
		{"init with a wrong password", "agent init", url("postgres", "wr0ng", s.address, plain),
			[]string{"--server-url", s.address, "password"}},
		{"init as nobody special", "agent init", url("pgherd", metadataPassword, s.address, plain),
			[]string{"--server-url", "superuser"}},
		{"a second init", "agent init", set("CREDENTIALS_FILE", s.file("second.json")), []string{"second.json", "--new-passwords"}},
		{"an init with another server's file", "agent init", set("CREDENTIALS_FILE", s.written("third.json",
			`{"agentPassword":"x","poolerPassword":"y","poolerAdminPassword":"z"}`, 0o600)), []string{"third.json", "--new-passwords"}},
		{"an init without a folder", "agent init", set("CREDENTIALS_FILE", "/nowhere/c.json"), []string{"/nowhere"}},
		{"an init for an unknown user", "agent init", set("CREDENTIALS_OWNER", "nobody-of-that-name"),
			[]string{"--credentials-owner", "nobody-of-that-name"}},
		{"an init with an old version", "agent init", set("ACCEPT_VERSIONS", ""), []string{"--accept-versions"}},
		{"an init with a limit of nothing", "agent init", set("TEMP_FILE_LIMIT", "0"), []string{"temp-file-limit", "10GB"}},
	}
}
