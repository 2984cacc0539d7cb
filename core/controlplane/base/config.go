package base

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Ports are what the use cases need. Ring, Journal, Sender, Mailer, Passwords, Passkeys, SignOn, Tokens and Tracer may be nil
// (without a Ring, it is not checked that processes have the same keys; without a Sender, webhooks are refused; without a Mailer,
// invitations are; without Passwords, nobody new can accept one; without Passkeys, nobody has any; without SignOn, nobody logs in
// by an issuer; without Tokens, no token of a CI system is exchanged; without a Tracer, there are no traces); all others are
// required.
type Ports struct {
	Store      ports.Store
	Admissions ports.Admissions
	Fleet      ports.Fleet
	Clock      ports.Clock
	Entropy    ports.Entropy
	Secrets    ports.SecretBox
	Ring       ports.KeyRing // the same as Secrets
	Journal    ports.Journal
	Sender     ports.WebhookSender
	Mailer     ports.Mailer
	Passwords  ports.Passwords
	Passkeys   ports.PasskeyVerifier
	SignOn     ports.SignOn
	Tokens     ports.TokenVerifier
	Snapshots  ports.Snapshots
	Tracer     trace.Tracer
}

// Config holds an installation's choices. The zero value of a field means its default.
type Config struct {
	// Instance names this process in leases. It must differ from every other process's; a random one is the default.
	Instance string
	// Limits are the rate limits; a missing class has its default.
	Limits map[ratelimit.Class]ratelimit.Limit
	// UnverifiedPlans are the plans whose backups are not verified. A deletion backup always is.
	UnverifiedPlans []account.Plan
	// RecoveryWindow is how long a deleted database can be recovered; by default deletion.DefaultWindow.
	RecoveryWindow time.Duration
	// PITR is how far back recovery to a point in time reaches, by plan; nil: account.DefaultPITR.
	PITR account.PITR
	// Retention is how long what is over stays; a missing kind has its default.
	Retention retention.Policy
	// DefaultSchedule is that of a database whose creation names none; by default daily.
	DefaultSchedule database.Schedule
	// DefaultPostgres is the major version of PostgreSQL of a database whose creation and account say none; by default
	// pgversion.Default.
	DefaultPostgres int
	// Pages are where the links of mails lead. Without one for invitations, mails say how to accept by the API; without one for
	// resets, nobody can reset a password.
	Pages mail.Pages
	// SignOnRules are what the installation makes of sign-ons; by default they are one way in beside others, and its name is "single
	// sign-on".
	SignOnRules person.SignOnRules
	// LeaseHold is how long a worker may be silent before another takes over its work; by default
	// work.DefaultLeaseHold.
	LeaseHold time.Duration
	// CreateWait is how long a request waits for a creation or a lifecycle action to finish; by default 60 s.
	CreateWait time.Duration
	// RoleWait is how long a request about a role, a login or query timeouts waits for the agent, which continues afterwards,
	// and how long a round waits that pushes settings or an allowlist; by default 20 s.
	RoleWait time.Duration
	// SizeWait is how long a read of one database waits for the agent to report its size; by default 300 ms.
	SizeWait time.Duration
	// SettingsWait is how long a read of query timeouts waits for the agent to report what is in force; by default 3 s.
	SettingsWait time.Duration
	// CheckWait is how long a read of an operation that callers drive waits for its next step; by default 5 s.
	CheckWait time.Duration
	// DownloadsPerAccount is how many downloads an account may have in this process at a time; by default 4.
	DownloadsPerAccount int
	// DownloadsPerServer is how many downloads this process may have from one database server at a time, and one account at most
	// half of them; by default 32.
	DownloadsPerServer int
	// DownloadWait is how long a download waits for one of these, and a certificate until it may be made; by default 5 s.
	DownloadWait time.Duration
	// CallsPerAccount is how many requests of an account may call agents in this process at a time, of one server at most half of
	// CallsPerServer; by default 8.
	CallsPerAccount int
	// CallsPerServer is how many requests may call the agent of one server at a time; by default 32, which is also how many
	// connections a process makes to an agent.
	CallsPerServer int
	// CallWait is how long a request waits until it may call an agent; by default 20 s, as RoleWait: that long is what others'
	// calls about logins take at most.
	CallWait time.Duration
	// HashWait is how long a request waits until its password may be hashed; by default 5 s.
	HashWait time.Duration
	// ResetPace is how long it takes to ask for another password, whether the address is somebody's or not; by default 300 ms.
	ResetPace time.Duration
	// Crash is called at each of the points that controlplane.CrashPoints and work.Engine.Points list, so that tests can kill
	// the process there.
	Crash func(point string)
}

// DefaultDownloadsPerAccount is enough for a customer, and leaves a server's slots to many.
const DefaultDownloadsPerAccount = 4

// DefaultDownloadsPerServer is how many downloads, and as many uploads, a process has from one database server.
const DefaultDownloadsPerServer = 32

func withDefaults(c Config, e ports.Entropy) Config {
	limits := ratelimit.Defaults()
	for class, l := range c.Limits {
		limits[class] = l
	}
	c.Limits = limits
	if c.Instance == "" {
		c.Instance = string(id.FromBytes[id.OperationID](e.UUID()))
	}
	if c.DefaultSchedule == "" {
		c.DefaultSchedule = database.Daily
	}
	if c.DefaultPostgres == 0 {
		c.DefaultPostgres = pgversion.Default
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
	if c.SignOnRules.Name == "" {
		c.SignOnRules.Name = "single sign-on"
	}
	if c.PITR == nil {
		c.PITR = account.DefaultPITR()
	}
	defaultTo(&c.RecoveryWindow, deletion.DefaultWindow)
	defaultTo(&c.CreateWait, time.Minute)
	defaultTo(&c.RoleWait, 20*time.Second)
	defaultTo(&c.SizeWait, 300*time.Millisecond)
	defaultTo(&c.SettingsWait, 3*time.Second)
	defaultTo(&c.CheckWait, 5*time.Second)
	defaultTo(&c.DownloadsPerAccount, DefaultDownloadsPerAccount)
	defaultTo(&c.DownloadsPerServer, DefaultDownloadsPerServer)
	defaultTo(&c.DownloadWait, 5*time.Second)
	defaultTo(&c.CallsPerAccount, 8)
	defaultTo(&c.CallsPerServer, 32)
	defaultTo(&c.CallWait, 20*time.Second)
	defaultTo(&c.HashWait, 5*time.Second)
	defaultTo(&c.ResetPace, 300*time.Millisecond)
	return c
}

func defaultTo[T ~int | ~int64](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}
