// Package crash names the moments between two steps of the agent's flows, so that a test can kill the agent at each and
// show that the next start goes on. Nothing happens at a point unless one was armed.
package crash

import (
	"os"
	"syscall"
)

// Env names the environment variable that ArmFromEnv reads.
const Env = "PGHERD_CRASH_AT"

// The points, by the flow that they stand in.
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

	BackupAdmitted = "agent.backup.admitted" // the command is in the ledger, no job runs
	BackupStarted  = "agent.backup.started"  // the job runs
	BackupFinished = "agent.backup.finished" // the job is over, its report is not stored
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
	BackupAdmitted, BackupStarted, BackupFinished, BackupReply,
	CloseRecorded, CloseEmptied, CloseDropped, CloseUndone, CloseReply,
	StartNamed, StartEnded, StartLocked,
}

var armed string

// ArmFromEnv arms the point that the environment names. Only test programs and the dev host call it, before anything runs.
func ArmFromEnv() { armed = os.Getenv(Env) }

// Point kills the process with SIGKILL where this point is armed.
func Point(name string) {
	if armed == "" || armed != name {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way; go no step further
}
