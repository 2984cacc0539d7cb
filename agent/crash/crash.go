// Package crash names the moments between two steps of the agent's flows, so that a test can kill the agent at each of them and
// show that the next start continues, or stop it there while PostgreSQL crashes. Nothing happens at a point that is not armed.
package crash

import (
	"os"
	"syscall"
	"time"
)

// Env names the environment variable that ArmFromEnv reads: a point, or Stop and a point.
const (
	Env  = "PGHERD_CRASH_AT"
	Stop = "stop:"
)

// The points, by flow.
const (
	CreateAdmitted = "agent.create.admitted" // the command is in the ledger, nothing is made
	CreateLogins   = "agent.create.logins"   // the roles stand, gates closed
	CreateDatabase = "agent.create.database" // the database stands under its temporary name
	CreateRights   = "agent.create.rights"   // the database is hardened
	CreateRenamed  = "agent.create.renamed"  // the database has its name, gates open
	CreatePooled   = "agent.create.pooled"   // PgBouncer has its entries
	CreateProved   = "agent.create.proved"   // the owner has logged in, the outcome is not stored
	CreateReply    = "agent.create.reply"    // the outcome is stored, not told

	AccessAdmitted   = "agent.access.admitted"   // the generation is in the ledger
	AccessGateClosed = "agent.access.gateclosed" // nobody new passes the pooler
	AccessEvicted    = "agent.access.evicted"    // no client of the pooler is left
	AccessLoginsOff  = "agent.access.loginsoff"  // the logins are NOLOGIN
	AccessEnded      = "agent.access.ended"      // no session is left
	AccessReply      = "agent.access.reply"      // the outcome is stored, not told

	AllowlistStored  = "agent.allowlist.stored"  // the networks are in the ledger
	AllowlistApplied = "agent.allowlist.applied" // PgBouncer goes by them
	AllowlistEvicted = "agent.allowlist.evicted" // no client from elsewhere is left
	AllowlistReply   = "agent.allowlist.reply"   // the outcome is stored, not told

	PrepareAdmitted = "agent.login.prepare.admitted" // the command is in the ledger, nothing is made
	PrepareMade     = "agent.login.prepare.made"     // the role stands without log-in
	PreparePooled   = "agent.login.prepare.pooled"   // PgBouncer has its limit, the outcome is not stored
	PrepareReply    = "agent.login.prepare.reply"    // the outcome is stored, not told

	OpenAdmitted = "agent.login.open.admitted" // the command is in the ledger, the login is shut
	OpenOpened   = "agent.login.open.opened"   // it has grants and password, and may log in
	OpenProved   = "agent.login.open.proved"   // it has logged in, the outcome is not stored
	OpenReply    = "agent.login.open.reply"    // the outcome is stored, not told

	ChangeAdmitted   = "agent.login.change.admitted"   // the generation is in the ledger
	ChangeGateClosed = "agent.login.change.gateclosed" // nobody new passes the pooler as the login
	ChangeEvicted    = "agent.login.change.evicted"    // no client of the pooler is left
	ChangeLoginOff   = "agent.login.change.loginoff"   // the login is NOLOGIN
	ChangeEnded      = "agent.login.change.ended"      // no session is left
	ChangeSet        = "agent.login.change.set"        // the login has the password, or lack of it, that it shall have
	ChangeProved     = "agent.login.change.proved"     // log-ins have shown what works and what does not
	ChangeSwept      = "agent.login.change.swept"      // no session of before is left, the outcome is not stored
	ChangeReply      = "agent.login.change.reply"      // the outcome is stored, not told

	RemoveAdmitted = "agent.login.remove.admitted" // the command is in the ledger, the role stands
	RemoveShut     = "agent.login.remove.shut"     // nobody logs in as it
	RemoveDropped  = "agent.login.remove.dropped"  // the role and its rows are gone, PgBouncer still has its limit
	RemoveReply    = "agent.login.remove.reply"    // the outcome is stored, not told

	BackupAdmitted = "agent.backup.admitted" // the command is in the ledger, no job runs
	BackupStarted  = "agent.backup.started"  // the job runs
	BackupFinished = "agent.backup.finished" // the job is over, its report is not stored
	BackupFailed   = "agent.backup.failed"   // the failure is stored, what the backup left is not removed
	BackupReply    = "agent.backup.reply"    // the report is stored, not told

	CloseRecorded = "agent.close.recorded" // the operation takes no more commands, nothing is undone
	CloseEmptied  = "agent.close.emptied"  // customers are out, the job is over
	CloseDropped  = "agent.close.dropped"  // the database is dropped, its logins stand
	CloseUndone   = "agent.close.undone"   // the logins and their rows are gone, PgBouncer still has the entries
	CloseReply    = "agent.close.reply"    // the outcome is stored, not told

	StartNamed  = "agent.start.named"  // the predecessor can write no more on new connections
	StartEnded  = "agent.start.ended"  // the predecessor's sessions are gone
	StartLocked = "agent.start.locked" // this agent has the lock
)

// Points lists every point.
var Points = []string{
	CreateAdmitted, CreateLogins, CreateDatabase, CreateRights, CreateRenamed, CreatePooled, CreateProved, CreateReply,
	AccessAdmitted, AccessGateClosed, AccessEvicted, AccessLoginsOff, AccessEnded, AccessReply,
	AllowlistStored, AllowlistApplied, AllowlistEvicted, AllowlistReply,
	PrepareAdmitted, PrepareMade, PreparePooled, PrepareReply,
	OpenAdmitted, OpenOpened, OpenProved, OpenReply,
	ChangeAdmitted, ChangeGateClosed, ChangeEvicted, ChangeLoginOff, ChangeEnded, ChangeSet, ChangeProved, ChangeSwept, ChangeReply,
	RemoveAdmitted, RemoveShut, RemoveDropped, RemoveReply,
	BackupAdmitted, BackupStarted, BackupFinished, BackupFailed, BackupReply,
	CloseRecorded, CloseEmptied, CloseDropped, CloseUndone, CloseReply,
	StartNamed, StartEnded, StartLocked,
}

var armed string

// ArmFromEnv arms the point that the environment names. Only test programs and the dev host call it, before anything runs.
func ArmFromEnv() { armed = os.Getenv(Env) }

// Point kills the process with SIGKILL if this point is armed for that, or the first time stops it until SIGCONT.
func Point(name string) {
	switch armed {
	case "":
	case name:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; go no step further
	case Stop + name:
		armed = ""
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(10 * time.Millisecond) // the signal is on its way
	}
}
